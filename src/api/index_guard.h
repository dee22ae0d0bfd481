// Private to api: one context's checks of positions (tensor/index_check.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "api/session.h"
#include "runtime/device.h"

namespace heddle::api {

class IndexGuard {
 public:
  explicit IndexGuard(const Program& program);  // which outlives it

  // The program's at first; ranges may be others in the next run.
  std::vector<tensor::IndexCheck>& checks() { return checks_; }
  void bound(int64_t input, const void* data);
  // The same on a device: what is checked is copied to the host before each run.
  void bound_on(const runtime::Device& device, int64_t input, const void* data);

  // Around a run. `hidden`: what it has left in a hidden output, by number. Errors: a position out
  // of range (user); a copy (machine).
  Status before();
  Status after(const std::function<const void*(size_t number)>& hidden) const;

 private:
  struct OnDevice {
    runtime::Device device;
    int64_t input;
    const void* data;
    tensor::Literal copy;
  };
  const Program& program_;
  std::vector<tensor::IndexCheck> checks_;
  std::vector<const void*> inputs_;
  std::vector<OnDevice> on_device_;
};

}  // namespace heddle::api
