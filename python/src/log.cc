#include "log.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "failure.h"
#include "heddle.h"
#include "heddle_info.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

constexpr size_t kMostKept = 10000;

struct Kept {
  std::mutex mutex;
  std::deque<std::pair<int, std::string>> messages;  // the newest ones
  std::atomic<bool> any = false;
};

// Lives as long as the process: threads of heddle may still write at its end.
Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

void keep(const heddle_log_message* message, void*) {
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  if (all.messages.size() == kMostKept) all.messages.pop_front();
  all.messages.emplace_back(message->level, message->text);
  all.any.store(true, std::memory_order_release);
}

void set_log(int most) {
  heddle_status* status = nullptr;
  {
    const nb::gil_scoped_release unlocked;
    status = heddle_set_log(most > HEDDLE_LOG_NOTHING ? keep : nullptr, nullptr, most);
  }
  check(status);
}

nb::list taken() {
  std::deque<std::pair<int, std::string>> messages;
  {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    messages.swap(all.messages);
    all.any.store(false, std::memory_order_release);
  }
  nb::list result;
  for (const auto& [level, text] : messages)
    result.append(
        nb::make_tuple(level, nb::steal(PyUnicode_DecodeUTF8(
                                  text.data(), static_cast<Py_ssize_t>(text.size()), "replace"))));
  return result;
}

}  // namespace

void define_log(nb::module_& module) { module.def("_set_log", &set_log, nb::arg("most")); }

void deliver_log() {
  if (!kept().any.load(std::memory_order_acquire)) return;
  try {
    nb::module_::import_("heddle._log").attr("deliver")(taken());
  } catch (nb::python_error& error) {  // of somebody's handler
    error.discard_as_unraisable("heddle's log");
  }
}

}  // namespace heddle::python
