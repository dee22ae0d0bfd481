// Private to api: one context's checks of index values (tensor/index_check.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "api/session.h"
#include "runtime/device.h"

namespace heddle::api {

class IndexGuard {
 public:
  explicit IndexGuard(const Program& program);  // `program` must outlive it

  // Initially the program's; ranges may be changed between runs.
  std::vector<tensor::IndexCheck>& checks() { return checks_; }
  void bound(int64_t input, const void* data);
  // The same for device memory: checked inputs are copied to the host before each run.
  void bound_on(const runtime::Device& device, int64_t input, const void* data);

  // Call before and after a run. `hidden` returns a hidden output of the run, by number. Errors: an
  // index out of range (user); a failed copy (machine).
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
