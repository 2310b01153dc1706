// Public keys that this thread has parsed recently.
//
// A compressed key is an x coordinate; parsing it takes a square root, a tenth of the time of a
// signature check. Keys repeat: the inputs of a transaction often belong to one wallet, and
// addresses are used again. So each thread keeps a table of the last keys, found by some bits of
// their x coordinate; a key replaces the one in its slot.
//
//   slot   | kind 1 | x 32 | the parsed point 64 |     2,048 slots, 200 KB a thread
//
// The whole key is compared, so the answer is always that of the library. Keys made to share
// a slot defeat the table; the check is then as slow as without it.
//
// Core's pubkey.cpp calls these functions by the library's names.

#ifndef VARVE_PARSED_KEYS_H
#define VARVE_PARSED_KEYS_H

namespace varve_parsed_keys {

constexpr size_t SLOTS = 2048;
constexpr size_t X = 32;
constexpr size_t POINT = 64;
/** The kind of a key of 32 bytes (BIP340). Those of 33 bytes begin with 2 or 3; an empty slot has 0. */
constexpr unsigned char X_ONLY = 1;

static_assert(sizeof(secp256k1_pubkey) == POINT && sizeof(secp256k1_xonly_pubkey) == POINT);

struct Slot {
    unsigned char kind;
    unsigned char x[X];
    unsigned char point[POINT];
};

/** The slot of a key, or null when there is no memory for the table. */
inline Slot* slot(const unsigned char* x) noexcept
{
    thread_local const std::unique_ptr<Slot[]> table{new (std::nothrow) Slot[SLOTS]()};
    return table ? &table[(x[X - 1] | x[X - 2] << 8) % SLOTS] : nullptr;
}

/** Copies the point of a key, by `parse` if it is not in the table. */
template <typename Parse>
int find(unsigned char kind, const unsigned char* x, unsigned char* point, Parse parse) noexcept
{
    Slot* const found = slot(x);
    if (found && found->kind == kind && memcmp(found->x, x, X) == 0) {
        memcpy(point, found->point, POINT);
        return 1;
    }
    const int valid = parse();
    if (found && valid) {
        found->kind = kind;
        memcpy(found->x, x, X);
        memcpy(found->point, point, POINT);
    }
    return valid;
}

inline int parse(const secp256k1_context* context, secp256k1_pubkey* key,
    const unsigned char* bytes, size_t length) noexcept
{
    const auto library = [=] { return secp256k1_ec_pubkey_parse(context, key, bytes, length); };
    const bool compressed = length == 1 + X && (bytes[0] == 2 || bytes[0] == 3);
    return compressed ? find(bytes[0], bytes + 1, key->data, library) : library();
}

inline int parse_x_only(
    const secp256k1_context* context, secp256k1_xonly_pubkey* key, const unsigned char* x) noexcept
{
    return find(X_ONLY, x, key->data,
        [=] { return secp256k1_xonly_pubkey_parse(context, key, x); });
}

} // namespace varve_parsed_keys

#undef secp256k1_ec_pubkey_parse
#define secp256k1_ec_pubkey_parse varve_parsed_keys::parse
#undef secp256k1_xonly_pubkey_parse
#define secp256k1_xonly_pubkey_parse varve_parsed_keys::parse_x_only

#endif
