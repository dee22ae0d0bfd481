#include "commands_json.h"

#include <nlohmann/json.hpp>

#include "program/views.h"

namespace heddle::tools {

nlohmann::ordered_json commands_json(const program::Program& program) {
  auto list = nlohmann::ordered_json::array();
  program::for_each_command(
      program, program.commands, program.command_info,
      [&](const program::Command& command, const program::CommandInfo& info, int) {
        nlohmann::ordered_json one = {{"name", info.name}, {"operators", info.operators}};
        if (const auto* launch = std::get_if<program::Launch>(&command)) {
          const program::Kernel& kernel = program.kernels[launch->kernel.index()];
          one["kernel"] = kernel.name;
          one["label"] = kernel.label;
        }
        one["nodes"] = info.nodes;
        list.push_back(std::move(one));
      });
  return list;
}

}  // namespace heddle::tools
