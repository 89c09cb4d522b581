#include "CJetstream.h"

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
