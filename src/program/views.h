// Walks the views that commands read and write.
#pragma once

#include <type_traits>
#include <variant>

#include "program/program.h"

namespace heddle::program {

enum class Use { read, write, workspace };

// function(View&, Use) on every view of a command, reads before writes.
template <typename CommandT, typename Function>
void for_each_view(CommandT& command, Function&& function) {
  static_assert(std::is_same_v<std::remove_const_t<CommandT>, Command>);
  if (auto* launch = std::get_if<Launch>(&command)) {
    int64_t i = 0;
    for (auto& view : launch->arguments) {
      const Use use = i < launch->inputs                     ? Use::read
                      : i < launch->inputs + launch->outputs ? Use::write
                                                             : Use::workspace;
      function(view, use);
      ++i;
    }
  } else if (auto* copy = std::get_if<Copy>(&command)) {
    function(copy->from, Use::read);
    function(copy->to, Use::write);
  } else {
    auto& call = std::get<HostCall>(command);
    for (auto& view : call.arguments) function(view, Use::read);
    for (auto& view : call.results) function(view, Use::write);
  }
}

}  // namespace heddle::program
