#ifndef CJETSTREAM_H
#define CJETSTREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The number of property trackings and schema recordings that are running in the process.
///
/// Each initialization of a property reads this number first. It is read with relaxed ordering: a
/// reader on another thread may see a change late, which is harmless, because only the thread that
/// raised the number has a tracker to find.
extern atomic_int_fast32_t jetstream_gate_count;

/// The same number, plus one once the process uses a model class that adopts `Observable`. Each read
/// of a property reads this number first.
extern atomic_int_fast32_t jetstream_read_gate_count;

/// Returns the gate for initializations. `pure` tells the optimizer that the call releases no object,
/// so that a loop that reads a property needs no retain and release around each read.
__attribute__((pure, always_inline)) static inline int32_t jetstream_gate(void) {
  return (int32_t)atomic_load_explicit(&jetstream_gate_count, memory_order_relaxed);
}

/// Returns the gate for reads.
__attribute__((pure, always_inline)) static inline int32_t jetstream_read_gate(void) {
  return (int32_t)atomic_load_explicit(&jetstream_read_gate_count, memory_order_relaxed);
}

/// Adds `delta` to both gates.
void jetstream_gate_add(int32_t delta);

/// Adds `delta` to the gate for reads.
void jetstream_read_gate_add(int32_t delta);

/// Returns the calling thread's tracker, a pointer that only the Swift code dereferences; null if
/// there is none.
void *_Nullable jetstream_tracker(void);
void jetstream_set_tracker(void *_Nullable tracker);

/// Returns the innermost delivery to immediate observers on the calling thread, a pointer that only the Swift code
/// dereferences; null if there is none.
void *_Nullable jetstream_delivery(void);
void jetstream_set_delivery(void *_Nullable delivery);

/// Returns the tree whose models the calling thread writes as other replicas have changed them, a pointer that only the
/// Swift code dereferences; null if there is none.
void *_Nullable jetstream_written_tree(void);
void jetstream_set_written_tree(void *_Nullable tree);

/// Returns true if the processor has an instruction for CRC-32C, so that `jetstream_crc32c` may be called.
bool jetstream_has_crc32c(void);

/// Returns the CRC-32C of bytes that follow others with the checksum `crc`.
uint32_t jetstream_crc32c(uint32_t crc, const void *_Nullable bytes, size_t count);

#endif
