// SHA-256 by the SHA instructions of x86-64: the one file of Core that is compiled for instructions
// which the processor may lack. `SHA256AutoDetect` in core.cpp decides at run time.

#include <immintrin.h>
#include <stdint.h>

inline namespace varve_core {

#include <crypto/sha256_x86_shani.cpp>

} // namespace varve_core
