#include "interrupt.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace heddle::python {
namespace {

std::atomic<heddle_context*> running = nullptr;
std::atomic<bool> pressed = false;
struct sigaction before;  // Python's

// Calls nothing that allocates or locks: heddle_context_cancel sets a flag.
void on_signal(int number, siginfo_t* info, void* where) {
  pressed.store(true);
  if (heddle_context* const context = running.load()) heddle_context_cancel(context);
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(number, info, where);
  else
    before.sa_handler(number);
}

bool is_main_thread() { return ::syscall(SYS_gettid) == ::getpid(); }

}  // namespace

Interrupt::Interrupt(heddle_context* context) {
  if (!is_main_thread()) return;
  struct sigaction now{};
  if (::sigaction(SIGINT, nullptr, &now) != 0) return;
  const bool handled =
      (now.sa_flags & SA_SIGINFO) != 0 || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
  const bool ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_signal;
  if (!handled || ours) return;
  before = now;
  pressed.store(false);
  running.store(context);
  now.sa_sigaction = on_signal;
  now.sa_flags |= SA_SIGINFO;
  active_ = ::sigaction(SIGINT, &now, nullptr) == 0;
}

Interrupt::~Interrupt() {
  if (!active_) return;
  ::sigaction(SIGINT, &before, nullptr);
  running.store(nullptr);
  pressed.store(false);
}

bool Interrupt::asked() { return pressed.load(); }
bool Interrupt::was_asked() const { return active_ && asked(); }

}  // namespace heddle::python
