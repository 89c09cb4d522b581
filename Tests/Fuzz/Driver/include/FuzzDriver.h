#pragma once
#include <stddef.h>
#include <stdint.h>

/// libFuzzer's main loop, which the linker adds for `-sanitize=fuzzer`.
int LLVMFuzzerRunDriver(
  int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));
