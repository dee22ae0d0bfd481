#include "api/index_guard.h"

namespace heddle::api {

IndexGuard::IndexGuard(const Program& program)
    : program_(program), checks_(program.index_checks()), inputs_(program.inputs().size()) {}

void IndexGuard::bound(int64_t input, const void* data) {
  inputs_[static_cast<size_t>(input)] = data;
  std::erase_if(on_device_, [&](const OnDevice& one) { return one.input == input; });
}

void IndexGuard::bound_on(const runtime::Device& device, int64_t input, const void* data) {
  bound(input, nullptr);
  if (!program_.checks_input(input)) return;
  const Port& port = program_.inputs()[static_cast<size_t>(input)];
  on_device_.push_back({device, input, data, tensor::Literal(port.shape)});
}

Status IndexGuard::before() {
  for (OnDevice& one : on_device_) {
    void* copy = one.copy.mutable_data();
    HEDDLE_RETURN_IF_ERROR(one.device.copy_now(copy, one.data, one.copy.bytes()));
    inputs_[static_cast<size_t>(one.input)] = copy;
  }
  for (const tensor::IndexCheck& check : checks_) {
    if (check.input < 0) continue;
    const Port& port = program_.inputs()[static_cast<size_t>(check.input)];
    const void* data = inputs_[static_cast<size_t>(check.input)];
    if (data == nullptr) continue;  // the run reports unbound ports
    HEDDLE_RETURN_IF_ERROR(
        tensor::check_indices(check, port.name, port.shape.type(), port.dims, data));
  }
  return {};
}

Status IndexGuard::after(const std::function<const void*(size_t number)>& hidden) const {
  size_t next = 0;
  for (const tensor::IndexCheck& check : checks_)
    if (check.input < 0) HEDDLE_RETURN_IF_ERROR(tensor::check_computed(check, hidden(next++)));
  return {};
}

}  // namespace heddle::api
