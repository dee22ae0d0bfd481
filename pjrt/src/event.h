// Events: something that will be done, or has failed.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "error.h"

namespace heddle::pjrt {

// Done once; may be waited for from any thread. A null std::shared_ptr<Moment> is one that was
// done, without an error, from the start.
class Moment {
 public:
  using Error = std::optional<Failure>;
  void set(Error error);
  bool is_set() const;
  Error wait() const;
  // Calls it now where the moment is over, else on the thread that sets it.
  void then(std::function<void(const Error&)> function);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
  Error error_;
  std::vector<std::function<void(const Error&)>> functions_;
};

// Failed from the start.
std::shared_ptr<Moment> failed_moment(Failure failure);
PJRT_Event* make_event(std::shared_ptr<Moment> moment);
// Throws its error.
void wait_for(const std::shared_ptr<Moment>& moment);

}  // namespace heddle::pjrt

struct PJRT_Event {
  std::shared_ptr<heddle::pjrt::Moment> moment;
};
