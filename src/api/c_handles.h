// Private to api: the contents of the handles of heddle.h.
#pragma once

#include <memory>

#include "api/c_status.h"
#include "api/heddle.h"
#include "api/session.h"

struct heddle_model {
  std::unique_ptr<heddle::api::Model> model;
};

struct heddle_program {
  std::shared_ptr<heddle::api::Program> program;
};

struct heddle_context {
  std::shared_ptr<const heddle::api::Program> program;  // its ports are bound
  std::unique_ptr<heddle::api::Context> context;
};

namespace heddle::api {

// Writes port `number`; out of range: a port without a name, and an error. `owner` names the
// argument that they belong to; a null `ports` means that it was NULL.
Status write_port(const Call& call, const char* owner, const std::vector<Port>* ports,
                  int64_t number, heddle_port* to);
Status write_dim(const Call& call, const std::vector<Port>& ports, int64_t number,
                 int64_t dimension, heddle_port_dim* to);
// Checks the caller's memory for each port: NULL only for ports of 0 bytes.
template <typename Pointer>
Status memory_of(const Call& call, const char* argument, const std::vector<Port>& ports,
                 const Pointer* memory) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (memory[i] == nullptr && ports[i].bytes > 0)
      return call.wrong(fmt::format("{}[{}]", argument, i), "NULL",
                        fmt::format("the memory of '{}'", ports[i].name));
  return {};
}
// Whether `number` is an index of a list of `size`.
inline bool is_place(int64_t number, size_t size) {
  return number >= 0 && static_cast<uint64_t>(number) < size;
}

}  // namespace heddle::api
