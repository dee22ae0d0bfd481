// Private to api: one context's checks of positions (tensor/index_check.h), and the memory of the
// hidden outputs, which callers do not see.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "api/session.h"
#include "runtime/device.h"

namespace heddle::api {

class IndexGuard {
 public:
  explicit IndexGuard(const Program& program);  // which outlives it

  // By number behind the program's outputs: where its runs write the hidden ones.
  const std::vector<void*>& hidden() const { return hidden_; }
  void bound(int64_t input, const void* data);
  // The same on a device: what is checked is copied to the host before each run.
  void bound_on(const runtime::Device& device, int64_t input, const void* data);

  // Around a run. Errors: a position out of range (user); a copy (machine).
  Status before();
  Status after() const;

 private:
  struct alignas(64) Line {
    std::array<char, 64> bytes;
  };
  struct OnDevice {
    runtime::Device device;
    int64_t input;
    const void* data;
    tensor::Literal copy;
  };
  const Program& program_;
  std::vector<const void*> inputs_;
  std::vector<OnDevice> on_device_;
  std::vector<Line> memory_;
  std::vector<void*> hidden_;
};

}  // namespace heddle::api
