// Bitcoin Core's script interpreter behind three C functions.
//
// All of Core's code is included into the namespace `varve_core`, in this one translation unit, so
// that its symbols cannot meet another copy of Core in the same program (`bitcoinconsensus` in our
// tests, `libbitcoinkernel`). For that to work every system header comes first, outside of the
// namespace; where Core includes it again, its guard makes that a no-op.
//
// No exception leaves: each function catches everything and returns a status.
//
// Out of memory ends the process with a sentence (`out_of_memory`). Core's EvalScript catches
// every exception and calls the script false, so a std::bad_alloc would become a verdict.

#include <secp256k1_names.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ios>
#include <iostream>
#include <limits>
#include <locale>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <byteswap.h>
#include <endian.h>
#endif
#if defined(__x86_64__) || defined(__amd64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include <secp256k1.h>
#include <secp256k1_ellswift.h>
#include <secp256k1_extrakeys.h>
#include <secp256k1_recovery.h>
#include <secp256k1_schnorrsig.h>

#include <parsed_keys.h>

namespace {

/** Ends the process without allocating, as varve-io's ReportingAllocator does on the Rust side. */
[[noreturn]] void out_of_memory() noexcept
{
    constexpr std::string_view MESSAGE =
        "error: out of memory while a script was checked; raise the limit of the process "
        "(ulimit -v) or of its container; what was stored is safe\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, MESSAGE.data(), MESSAGE.size());
    _exit(1);
}

/** Installed before main, for every allocation by new. */
const std::new_handler PREVIOUS_HANDLER = std::set_new_handler(out_of_memory);

} // namespace

inline namespace varve_core {

// Core's prevector allocates with these two and asserts that it got memory.
inline void* malloc(size_t size)
{
    void* memory = std::malloc(size);
    if (!memory) out_of_memory();
    return memory;
}

inline void* realloc(void* old, size_t size)
{
    void* memory = std::realloc(old, size);
    if (!memory) out_of_memory();
    return memory;
}

#include <crypto/ripemd160.cpp>
#include <crypto/sha1.cpp>
#include <crypto/sha256.cpp>
#if defined(USE_ASM)
#include <crypto/sha256_sse4.cpp>
#endif
#include <crypto/sha512.cpp>
#include <crypto/hmac_sha512.cpp>
#include <util/strencodings.cpp>
#include <uint256.cpp>
#include <hash.cpp>
#include <primitives/transaction.cpp>
#include <pubkey.cpp>
#include <script/script.cpp>
#include <script/script_error.cpp>
#include <script/interpreter.cpp>

} // namespace varve_core

namespace {

/** The rules of consensus; the other flags of the interpreter are policy. */
constexpr uint32_t KNOWN_FLAGS = SCRIPT_VERIFY_P2SH | SCRIPT_VERIFY_DERSIG | SCRIPT_VERIFY_NULLDUMMY |
    SCRIPT_VERIFY_CHECKLOCKTIMEVERIFY | SCRIPT_VERIFY_CHECKSEQUENCEVERIFY | SCRIPT_VERIFY_WITNESS |
    SCRIPT_VERIFY_TAPROOT;

/** What the functions return. `src/lib.rs` has the same numbers. */
enum Status : int {
    STATUS_OK = 0,
    /** The scripts fail. */
    STATUS_SCRIPT = 1,
    /** The bytes are not exactly one transaction. */
    STATUS_MALFORMED = 2,
    /** There is not one spent output for each input. */
    STATUS_SPENT = 3,
    /** There is no such input. */
    STATUS_INPUT = 4,
    /** Flags that are unknown, or WITNESS without P2SH, on which the interpreter would abort. */
    STATUS_FLAGS = 5,
    /** Core threw something else. */
    STATUS_FAILED = 6,
};

/** Reads from a buffer as Core's streams do: throws at the end. */
class Bytes
{
public:
    Bytes(const unsigned char* data, size_t size) : m_data(data), m_left(size) {}

    void read(Span<std::byte> to)
    {
        if (to.size() > m_left) throw std::ios_base::failure("end of data");
        if (to.size() == 0) return;
        memcpy(to.data(), m_data, to.size());
        m_data += to.size();
        m_left -= to.size();
    }

    template <typename T>
    Bytes& operator>>(T&& object)
    {
        ::Unserialize(*this, object);
        return *this;
    }

    int GetVersion() const { return PROTOCOL_VERSION; }
    size_t left() const { return m_left; }

private:
    const unsigned char* m_data;
    size_t m_left;
};

/** Chooses the SHA-256 code for this processor, before main. */
const std::string SHA256_CODE = SHA256AutoDetect();

} // namespace

/** An output that is spent, in the caller's memory. */
struct varve_spent_output {
    const unsigned char* script;
    size_t script_length;
    int64_t value;
};

/** A parsed transaction and the hashes that all of its signatures share. Never changed once it is
 *  made, and nothing in it is computed lazily, so any number of threads may verify with it.
 *
 *  It is a CMutableTransaction because a CTransaction computes its txid and wtxid, which nobody asks
 *  for here. The checker and the precomputed data are templates over both. */
struct varve_transaction {
    CMutableTransaction tx;
    PrecomputedTransactionData shared;
};

extern "C" {

int varve_transaction_new(const unsigned char* bytes, size_t length,
    const varve_spent_output* spent, size_t spent_count, varve_transaction** made) noexcept
{
    try {
        auto transaction = std::make_unique<varve_transaction>();
        Bytes stream(bytes, length);
        stream >> transaction->tx;
        const CMutableTransaction& tx = transaction->tx;
        if (stream.left() != 0 || tx.vin.empty()) return STATUS_MALFORMED;
        if (spent_count != tx.vin.size()) return STATUS_SPENT;
        std::vector<CTxOut> outputs;
        outputs.reserve(spent_count);
        for (const varve_spent_output* output = spent; output != spent + spent_count; ++output) {
            const unsigned char* script = output->script;
            outputs.emplace_back(output->value, CScript(script, script + output->script_length));
        }
        transaction->shared.Init(tx, std::move(outputs));
        *made = transaction.release();
        return STATUS_OK;
    } catch (const std::ios_base::failure&) {
        return STATUS_MALFORMED;
    } catch (...) {
        return STATUS_FAILED;
    }
}

int varve_transaction_verify(
    const varve_transaction* transaction, size_t input, uint32_t flags) noexcept
{
    const bool witness_alone = (flags & SCRIPT_VERIFY_WITNESS) && !(flags & SCRIPT_VERIFY_P2SH);
    if ((flags & ~KNOWN_FLAGS) || witness_alone) return STATUS_FLAGS;
    const CMutableTransaction& tx = transaction->tx;
    if (input >= tx.vin.size()) return STATUS_INPUT;
    try {
        const CTxIn& in = tx.vin[input];
        const CTxOut& spent = transaction->shared.m_spent_outputs[input];
        const MutableTransactionSignatureChecker checker(&tx, static_cast<unsigned int>(input),
            spent.nValue, transaction->shared, MissingDataBehavior::FAIL);
        const bool valid =
            VerifyScript(in.scriptSig, spent.scriptPubKey, &in.scriptWitness, flags, checker, nullptr);
        return valid ? STATUS_OK : STATUS_SCRIPT;
    } catch (...) {
        return STATUS_FAILED;
    }
}

void varve_transaction_free(varve_transaction* transaction) noexcept { delete transaction; }


} // extern "C"
