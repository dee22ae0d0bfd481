// Private to api: what the handles of heddle.h hold.
#pragma once

#include <memory>

#include "api/heddle.h"
#include "api/session.h"

struct heddle_model {
  std::unique_ptr<heddle::api::Model> model;
};

struct heddle_program {
  std::shared_ptr<heddle::api::Program> program;
};

struct heddle_context {
  std::unique_ptr<heddle::api::Context> context;
};

namespace heddle::api {

// Port `number`, or one without a name.
heddle_port c_port(const std::vector<Port>& ports, int64_t number);
// Whether `number` is a place of a list of `size`.
inline bool is_place(int64_t number, size_t size) {
  return number >= 0 && static_cast<uint64_t>(number) < size;
}

}  // namespace heddle::api
