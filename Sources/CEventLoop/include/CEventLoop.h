#ifndef CEVENTLOOP_H
#define CEVENTLOOP_H

// The modules of the C libraries leave these headers out.
#ifdef __linux__
#include <sys/epoll.h>
#include <sys/eventfd.h>
#endif

/// Returns the event loop whose thread is the calling one, a pointer that is only compared; null on any other thread.
const void *_Nullable jetstream_loop(void);
void jetstream_set_loop(const void *_Nullable loop);

#ifdef __linux__
/// Accepts one waiting connection as a non-blocking socket that no child process inherits; -1 on failure, with `errno`.
int jetstream_accept(int listening);
#endif

#endif
