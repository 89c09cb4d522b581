#include "CEventLoop.h"

static _Thread_local const void *loop;

const void *jetstream_loop(void) { return loop; }
void jetstream_set_loop(const void *now) { loop = now; }
