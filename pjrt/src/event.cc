#include "event.h"

#include <utility>

#include "functions.h"

namespace heddle::pjrt {

void Moment::set(Error error) {
  std::vector<std::function<void(const Error&)>> functions;
  {
    const std::lock_guard lock(mutex_);
    if (set_) fail(PJRT_Error_Code_FAILED_PRECONDITION, "the event was set before");
    set_ = true;
    error_ = std::move(error);
    functions.swap(functions_);
    changed_.notify_all();
  }
  for (const auto& function : functions) function(error_);
}

bool Moment::is_set() const {
  const std::lock_guard lock(mutex_);
  return set_;
}

Moment::Error Moment::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return set_; });
  return error_;
}

void Moment::then(std::function<void(const Error&)> function) {
  {
    const std::lock_guard lock(mutex_);
    if (!set_) return functions_.push_back(std::move(function));
  }
  function(error_);
}

std::shared_ptr<Moment> failed_moment(Failure failure) {
  auto moment = std::make_shared<Moment>();
  moment->set(std::move(failure));
  return moment;
}

PJRT_Event* make_event(std::shared_ptr<Moment> moment) { return new PJRT_Event{std::move(moment)}; }

void wait_for(const std::shared_ptr<Moment>& moment) {
  if (moment == nullptr) return;
  if (Moment::Error error = moment->wait()) throw Failure(*std::move(error));
}

void Event_Create(PJRT_Event_Create_Args& args) {
  args.event = make_event(std::make_shared<Moment>());
}

void Event_Destroy(PJRT_Event_Destroy_Args& args) { delete args.event; }

void Event_IsReady(PJRT_Event_IsReady_Args& args) {
  const auto& moment = given(args.event, "event")->moment;
  args.is_ready = moment == nullptr || moment->is_set();
}

void Event_Error(PJRT_Event_Error_Args& args) {
  const auto& moment = given(args.event, "event")->moment;
  if (moment != nullptr && !moment->is_set())
    fail(PJRT_Error_Code_FAILED_PRECONDITION, "the event is not ready");
  wait_for(moment);
}

void Event_Await(PJRT_Event_Await_Args& args) { wait_for(given(args.event, "event")->moment); }

void Event_OnReady(PJRT_Event_OnReady_Args& args) {
  const auto& moment = given(args.event, "event")->moment;
  const auto callback = given(args.callback, "callback");
  void* const argument = args.user_arg;
  if (moment == nullptr) return callback(nullptr, argument);
  moment->then([callback, argument](const Moment::Error& error) {
    callback(error ? make_error(*error) : nullptr, argument);
  });
}

void Event_Set(PJRT_Event_Set_Args& args) {
  const auto& moment = given(args.event, "event")->moment;
  if (moment == nullptr) fail(PJRT_Error_Code_FAILED_PRECONDITION, "the event was set before");
  if (args.error_code == PJRT_Error_Code_OK) return moment->set({});
  moment->set(Failure{args.error_code, std::string(args.error_message, args.error_message_size)});
}

}  // namespace heddle::pjrt
