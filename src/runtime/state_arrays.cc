#include "runtime/state_arrays.h"

#include <chrono>
#include <cstring>

namespace heddle::runtime {

Status StateArrays::begin(const program::Program& program) {
  const std::lock_guard lock(turn_);
  if (begun_ && starts_ == program.states) return {};
  if (begun_)
    return user_error("program {}: its {} states are not those of the program that it goes on from",
                      program.name, program.states.size());
  for (const program::StateArray& state : program.states) {
    const auto bytes = static_cast<int64_t>(state.start.size());
    HEDDLE_ASSIGN_OR_RETURN(tensor::Literal array,
                            tensor::Literal::make(tensor::Shape::array(tensor::Type::u8, {bytes})));
    if (bytes > 0) std::memcpy(array.mutable_data(), state.start.data(), state.start.size());
    arrays_.push_back(std::move(array));
  }
  starts_ = program.states;
  begun_ = true;
  return {};
}

Status StateArrays::check(size_t i, size_t bytes) const {
  if (i >= arrays_.size()) return user_error("no state {}, there are {}", i, arrays_.size());
  if (std::ssize(starts_[i].start) != static_cast<int64_t>(bytes))
    return user_error("state {}: got {} bytes, wanted {}", i, bytes, starts_[i].start.size());
  return {};
}

Status StateArrays::read(size_t i, std::span<char> array) {
  const std::lock_guard lock(turn_);
  HEDDLE_RETURN_IF_ERROR(check(i, array.size()));
  if (!array.empty()) std::memcpy(array.data(), arrays_[i].data(), array.size());
  return {};
}

Status StateArrays::write(size_t i, std::span<const char> array) {
  const std::lock_guard lock(turn_);
  HEDDLE_RETURN_IF_ERROR(check(i, array.size()));
  if (!array.empty()) std::memcpy(arrays_[i].mutable_data(), array.data(), array.size());
  return {};
}

bool StateArrays::take_turn(std::unique_lock<std::timed_mutex>& turn, Cancellation& cancellation) {
  turn = std::unique_lock(turn_, std::defer_lock);
  while (!turn.try_lock_for(std::chrono::milliseconds(10)))
    if (cancellation.take()) return false;
  return true;
}

}  // namespace heddle::runtime
