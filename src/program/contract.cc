#include "program/contract.h"

#include "program/views.h"

namespace heddle::program {
namespace {

class Words {
 public:
  void add(int64_t word) { bytes_.append(reinterpret_cast<const char*>(&word), sizeof word); }
  void add(const std::vector<int64_t>& words) {
    add(static_cast<int64_t>(words.size()));
    for (const int64_t word : words) add(word);
  }
  void add(const std::string& text) {
    add(static_cast<int64_t>(text.size()));
    bytes_ += text;
  }
  Hash128 hash() const { return hash128(bytes_); }

 private:
  std::string bytes_;
};

void add(Words& words, const Kernel& kernel) {
  words.add(static_cast<int64_t>(kernel.phases.size()));
  for (const Phase& phase : kernel.phases) {
    words.add(phase.symbol);
    words.add(phase.tasks);
  }
  words.add(kernel.scratch_bytes);
}

void add(Words& words, const Launch& launch) {
  words.add(static_cast<int64_t>(launch.kernel.index()));
  words.add(launch.dims);
  words.add(launch.inputs);
  words.add(launch.outputs);
  words.add(launch.in_place);
  words.add(launch.in_part);
  words.add(static_cast<int64_t>(launch.arguments.size()));
  for (const View& view : launch.arguments) words.add(stored_bytes(view.shape));
}

}  // namespace

Hash128 contract_of(const Variant& variant) {
  const Program& program = variant.program;
  Words words;
  words.add(variant.least);
  words.add(variant.bounds);
  words.add(variant.told);
  words.add(static_cast<int64_t>(program.kernels.size()));
  for (const Kernel& kernel : program.kernels) add(words, kernel);
  const auto visit = [&](const Command& command, const CommandInfo&, int) {
    if (const auto* launch = std::get_if<Launch>(&command)) add(words, *launch);
  };
  for_each_command(program, program.once, program.once_info, visit);
  for_each_command(program, program.commands, program.command_info, visit);
  return words.hash();
}

}  // namespace heddle::program
