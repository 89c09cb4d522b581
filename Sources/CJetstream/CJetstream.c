#include "CJetstream.h"

#include <stdlib.h>
#include <string.h>

atomic_int_fast32_t jetstream_gate_count = 0;
atomic_int_fast32_t jetstream_read_gate_count = 0;

static _Thread_local void *current_tracker = 0;
static _Thread_local void *current_delivery = 0;
static _Thread_local void *current_written_tree = 0;

void jetstream_gate_add(int32_t delta) {
  atomic_fetch_add_explicit(&jetstream_gate_count, delta, memory_order_relaxed);
  jetstream_read_gate_add(delta);
}

void jetstream_read_gate_add(int32_t delta) {
  atomic_fetch_add_explicit(&jetstream_read_gate_count, delta, memory_order_relaxed);
}

void *jetstream_tracker(void) { return current_tracker; }

void jetstream_set_tracker(void *tracker) { current_tracker = tracker; }

void *jetstream_delivery(void) { return current_delivery; }

void jetstream_set_delivery(void *delivery) { current_delivery = delivery; }

void *jetstream_written_tree(void) { return current_written_tree; }

void jetstream_set_written_tree(void *tree) { current_written_tree = tree; }

// CRC-32C by the processor's instruction: SSE 4.2, or the CRC extension of ARM where the compiler may use it.

#if defined(__x86_64__)
#include <cpuid.h>
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_WORD(crc, word) (uint32_t)__builtin_ia32_crc32di(crc, word)
#define CRC_BYTE(crc, byte) __builtin_ia32_crc32qi(crc, byte)

bool jetstream_has_crc32c(void) {
  unsigned int eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_SSE4_2) != 0;
}
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define CRC_TARGET
#define CRC_WORD(crc, word) __crc32cd(crc, word)
#define CRC_BYTE(crc, byte) __crc32cb(crc, byte)

bool jetstream_has_crc32c(void) { return true; }
#else
bool jetstream_has_crc32c(void) { return false; }
#endif

#if defined(CRC_TARGET)
CRC_TARGET uint32_t jetstream_crc32c(uint32_t crc, const void *bytes, size_t count) {
  const uint8_t *next = bytes;
  crc = ~crc;
  for (; count >= 8; next += 8, count -= 8) {
    uint64_t word;
    memcpy(&word, next, 8);
    crc = CRC_WORD(crc, word);
  }
  for (; count > 0; next++, count--) crc = CRC_BYTE(crc, *next);
  return ~crc;
}
#else
uint32_t jetstream_crc32c(uint32_t crc, const void *bytes, size_t count) { abort(); }
#endif
