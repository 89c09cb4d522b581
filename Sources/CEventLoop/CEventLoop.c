// For accept4, which the modules of the C libraries leave out.
#define _GNU_SOURCE
#include "CEventLoop.h"

static _Thread_local const void *loop;

const void *jetstream_loop(void) { return loop; }
void jetstream_set_loop(const void *now) { loop = now; }

#ifdef __linux__
#include <sys/socket.h>

int jetstream_accept(int listening) {
  return accept4(listening, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
#endif
