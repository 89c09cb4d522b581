#ifndef CJETSTREAM_H
#define CJETSTREAM_H

#include <stdatomic.h>
#include <stdint.h>

/// How many property trackings and schema recordings run in the process right now.
///
/// Every property that is initialized looks at this number first. It is read relaxed: a reader on
/// another thread may see it late, which is harmless, because only the thread that raised it has a
/// tracker to find.
extern atomic_int_fast32_t jetstream_gate_count;

/// The same number, and one more as soon as there is a model class that adopts `Observable`: every
/// property read looks at this one.
extern atomic_int_fast32_t jetstream_read_gate_count;

/// Reads the gate. `pure` tells the optimizer that the call releases no object, so that a read of
/// a property in a loop keeps no retain and release pair around it.
__attribute__((pure, always_inline)) static inline int32_t jetstream_gate(void) {
  return (int32_t)atomic_load_explicit(&jetstream_gate_count, memory_order_relaxed);
}

/// Reads the gate for property reads.
__attribute__((pure, always_inline)) static inline int32_t jetstream_read_gate(void) {
  return (int32_t)atomic_load_explicit(&jetstream_read_gate_count, memory_order_relaxed);
}

/// Raises or lowers both gates by `delta`.
void jetstream_gate_add(int32_t delta);

/// Raises or lowers the gate for reads by `delta`.
void jetstream_read_gate_add(int32_t delta);

/// The calling thread's tracker, a pointer that only the Swift side knows how to read.
void *_Nullable jetstream_tracker(void);
void jetstream_set_tracker(void *_Nullable tracker);

#endif
