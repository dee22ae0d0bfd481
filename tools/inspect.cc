// heddle inspect: what is in a model or a compiled program.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "api/session.h"
#include "command_line.h"
#include "commands.h"
#include "commands_json.h"
#include "hlo/module.h"
#include "model_options.h"
#include "program/file.h"
#include "program/program.h"
#include "program/text.h"
#include "program/views.h"
#include "report.h"
#include "support_text.h"
#include "values.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

struct GraphFacts {
  std::vector<std::pair<std::string, int64_t>> operators;  // most frequent first
  int64_t constants = 0, constant_bytes = 0;
};

GraphFacts facts_of(const hlo::Module& module) {
  GraphFacts facts;
  std::map<std::string, int64_t> counts;
  for (const auto& computation : module.computations()) {
    for (const hlo::Instr* instr : computation->instrs()) {
      if (instr->is(hlo::Opcode::constant)) {
        ++facts.constants;
        facts.constant_bytes += instr->literal().bytes();
      } else if (!instr->is(hlo::Opcode::parameter)) {
        ++counts[std::string(hlo::opcode_text(instr->opcode()))];
      }
    }
  }
  facts.operators.assign(counts.begin(), counts.end());
  std::stable_sort(facts.operators.begin(), facts.operators.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return facts;
}

// Launches of each kernel in a run.
std::map<uint32_t, int64_t> launches_of(const program::Program& program) {
  std::map<uint32_t, int64_t> launches;
  program::for_each_command(program, program.commands, program.command_info,
                            [&](const program::Command& command, const program::CommandInfo&, int) {
                              if (const auto* launch = std::get_if<program::Launch>(&command))
                                ++launches[launch->kernel.value];
                            });
  return launches;
}

const char* kind_name(program::BufferKind kind) {
  constexpr const char* kNames[] = {"input", "output", "constant", "once", "temporary"};
  return kNames[static_cast<size_t>(kind)];
}

class Inspect : public Command {
 public:
  std::string_view name() const override { return "inspect"; }
  std::string_view summary() const override {
    return "shows what is in a model or a compiled program";
  }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare_values(line);
    line.group("What to show");
    line.flag(header_, "--header", "only the header of a compiled program; nothing else is read");
    line.flag(graph_only_, "--graph", "only the graph; nothing is compiled");
    line.flag(supported_, "--supported",
              "ONNX: everything that cannot be imported, where it is and what to do; nothing is "
              "compiled");
    line.flag(buffers_, "--buffers", "every buffer with its place in memory");
    line.flag(program_text_, "--program", "the whole program as text");
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle inspect model.onnx --graph\n"
        "  heddle inspect model.heddle --buffers\n");
  }

  Result<int> run() override {
    if (header_) return show_header();
    if (supported_) return show_support();
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open(inputs_));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    ProgramHandle program;
    std::string why_not;
    if (!graph_only_) {
      // A model that cannot be compiled still has a graph to show.
      Result<ProgramHandle> compiled = compile_.compile(model.get(), false);
      if (compiled)
        program = std::move(*compiled);
      else if (whose(compiled.error().kind) == ErrorKind::machine ||
               info_of(model.get()).is_program)
        return tl::unexpected(compiled.error());
      else
        why_not = compiled.error().message;
    }
    if (!json_.only_json()) {
      print_model(model.get());
      if (program) print_program(program.get());
      if (!why_not.empty()) fmt::print("not compiled: {}\n", why_not);
    }
    HEDDLE_RETURN_IF_ERROR(json_.write(json(model.get(), program.get(), why_not)));
    return 0;
  }

 private:
  Result<int> show_header() const {
    HEDDLE_ASSIGN_OR_RETURN(const program::FileHeader header, program::read_header(open_.model));
    if (!json_.only_json()) {
      fmt::print("{}: {}, format version {}, made by build {}\n", open_.model, header.name,
                 header.version, header.build_id);
      fmt::print("for {}: {}\n", header.target_name, header.features);
      if (!header.dimensions.empty())
        fmt::print("dimensions {}: {} programs\n", header.dimensions, header.programs);
      fmt::print("{}: constants {}, code {}\n", bytes_text(header.file_bytes),
                 bytes_text(header.constant_bytes), bytes_text(header.object_bytes));
    }
    ordered_json json{{"schema", 1},
                      {"model", open_.model},
                      {"name", header.name},
                      {"version", header.version},
                      {"build_id", header.build_id},
                      {"target", header.target_name},
                      {"features", header.features},
                      {"dimensions", header.dimensions},
                      {"programs", header.programs},
                      {"file_bytes", header.file_bytes},
                      {"constant_bytes", header.constant_bytes},
                      {"object_bytes", header.object_bytes}};
    HEDDLE_RETURN_IF_ERROR(json_.write(json));
    return 0;
  }

  // 0: all can be imported; 1: not all.
  Result<int> show_support() const {
    {
      HEDDLE_ASSIGN_OR_RETURN(const import::ModelFile file, import::open_model_file(open_.model));
      if (file.format != import::Format::onnx)
        return user_error("{}: --supported is for ONNX models, this is {}", open_.model,
                          import::format_name(file.format));
    }
    import::Options options;
    for (const std::string& text : open_.dims) {
      HEDDLE_ASSIGN_OR_RETURN(const DimChoice dim, parse_dim(text));
      if (dim.size) options.dims[dim.name] = *dim.size;
    }
    for (const std::string& text : open_.shapes) {
      HEDDLE_ASSIGN_OR_RETURN(const auto shape, parse_shape_choice(text));
      options.shapes.insert(shape);
    }
    HEDDLE_ASSIGN_OR_RETURN(const import::SupportReport report,
                            import::check_support(open_.model, options));
    if (!json_.only_json()) fmt::print("{}", support_text(open_.model, report));
    HEDDLE_RETURN_IF_ERROR(json_.write(support_json(open_.model, report)));
    return report.supported() ? 0 : 1;
  }

  void print_model(const heddle_model* handle) const {
    const api::Model& model = api::unwrap(handle);
    fmt::print("{}: {}, {}", open_.model, model.format(), model.name());
    if (model.instructions() > 0) fmt::print(", {} instructions", model.instructions());
    fmt::print("\n");
    for (const auto& [what, ports] :
         {std::pair("input", &model.inputs()), std::pair("output", &model.outputs())})
      for (const api::Port& port : *ports)
        fmt::print("{} {}{}: {}\n", what, port.name,
                   port.alias.empty() ? "" : " (" + port.alias + ")",
                   tensor::to_string(port.shape, false));
    print_notes(model.notes());
    if (model.module() == nullptr) return;
    const GraphFacts facts = facts_of(*model.module());
    fmt::print("constants: {}, {}\noperators:", facts.constants, bytes_text(facts.constant_bytes));
    for (const auto& [name, count] : facts.operators) fmt::print(" {} {}", name, count);
    fmt::print("\n");
  }

  static void print_library_calls(const program::Program& compiled) {
    program::for_each_command(
        compiled, compiled.commands, compiled.command_info,
        [](const program::Command& command, const program::CommandInfo& info, int) {
          if (const auto* call = std::get_if<program::LibraryCall>(&command))
            fmt::print("  {} by {} in {} tasks: {} flops, minimum traffic {}: {}\n", info.name,
                       call->library, call->tasks, call->flops, bytes_text(call->min_bytes),
                       info.operators);
        });
  }

  void print_program(const heddle_program* handle) const {
    const api::Program& program = api::unwrap(handle);
    const program::Program* compiled = program.compiled();
    const api::ProgramFacts& facts = program.facts();
    if (compiled == nullptr) return;
    fmt::print("compiled for {} ({}): {}\n", facts.target, facts.isa, facts.options);
    fmt::print("kernels: {} ({} of them in a run), launches: {}, code {}\n", facts.kernels,
               facts.run_kernels, facts.launches, bytes_text(facts.object_bytes));
    auto launches = launches_of(*compiled);
    for (size_t k = 0; k < compiled->kernels.size(); ++k) {
      const program::Kernel& kernel = compiled->kernels[k];
      fmt::print("  {} {}: launches {}, {} flops, minimum traffic {}, scratch {}{}\n", kernel.name,
                 kernel.label, launches[static_cast<uint32_t>(k)], kernel.flops,
                 bytes_text(kernel.min_bytes), bytes_text(kernel.scratch_bytes),
                 operators_of(*compiled, k));
    }
    print_library_calls(*compiled);
    fmt::print(
        "memory: constants {}, inputs {}, outputs {}, temporaries {} ({}lower bound {}, pool peak "
        "{}, "
        "without reuse {})\n",
        bytes_text(facts.constant_bytes), bytes_text(facts.input_bytes),
        bytes_text(facts.output_bytes), bytes_text(facts.temporary_bytes),
        facts.temporary_optimal ? "optimal, " : "", bytes_text(facts.temporary_lower_bound_bytes),
        bytes_text(facts.temporary_pool_peak_bytes), bytes_text(facts.temporary_unshared_bytes));
    print_notes(program.notes());
    if (buffers_) print_buffers(*compiled);
    if (program_text_) fmt::print("{}", program::to_string(*compiled));
  }

  static std::string operators_of(const program::Program& program, size_t kernel) {
    std::string text;
    auto look = [&](const program::Command& command, const program::CommandInfo& info, int) {
      const auto* launch = std::get_if<program::Launch>(&command);
      if (launch != nullptr && launch->kernel.index() == kernel && text.empty())
        text = ": " + info.operators;
    };
    program::for_each_command(program, program.commands, program.command_info, look);
    program::for_each_command(program, program.once, program.once_info, look);
    return text;
  }

  static void print_buffers(const program::Program& program) {
    fmt::print("buffers:\n{:>6} {:<10} {:>12} {:>12} {:>14}  {}\n", "", "kind", "bytes", "offset",
               "live", "value");
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const program::Buffer& buffer = program.buffers[i];
      const bool temporary = buffer.kind == program::BufferKind::temporary;
      fmt::print("{:>6} {:<10} {:>12} {:>12} {:>14}  {}\n", fmt::format("b{}", i),
                 kind_name(buffer.kind), buffer.bytes, buffer.offset_bytes,
                 temporary ? fmt::format("{}..{}", buffer.first_command, buffer.last_command) : "",
                 buffer.name);
    }
  }

  static ordered_json ports_json(const std::vector<api::Port>& ports) {
    ordered_json list = ordered_json::array();
    for (const api::Port& port : ports)
      list.push_back({{"name", port.name},
                      {"alias", port.alias},
                      {"type", std::string(tensor::type_name(port.shape.type()))},
                      {"shape", port.dims},
                      {"bytes", port.bytes}});
    return list;
  }

  ordered_json json(const heddle_model* handle, const heddle_program* program,
                    const std::string& why_not) const {
    const api::Model& model = api::unwrap(handle);
    ordered_json json;
    json["schema"] = 1;
    json["model"] = open_.model;
    json["format"] = model.format();
    json["name"] = model.name();
    json["instructions"] = model.instructions();
    json["inputs"] = ports_json(model.inputs());
    json["outputs"] = ports_json(model.outputs());
    json["notes"] = model.notes();
    if (model.module() != nullptr) {
      const GraphFacts facts = facts_of(*model.module());
      json["constants"] = facts.constants;
      json["constant_bytes"] = facts.constant_bytes;
      json["operators"] = ordered_json::object();
      for (const auto& [name, count] : facts.operators) json["operators"][name] = count;
    }
    if (!why_not.empty()) json["not_compiled"] = why_not;
    if (program != nullptr && api::unwrap(program).compiled() != nullptr)
      json["program"] = program_json(api::unwrap(program));
    return json;
  }

  ordered_json program_json(const api::Program& program) const {
    const api::ProgramFacts& facts = program.facts();
    const program::Program& compiled = *program.compiled();
    auto launches = launches_of(compiled);
    ordered_json json;
    json["target"] = facts.target;
    json["isa"] = facts.isa;
    json["options"] = facts.options;
    json["launches"] = facts.launches;
    json["kernels"] = ordered_json::array();
    for (size_t k = 0; k < compiled.kernels.size(); ++k) {
      const program::Kernel& kernel = compiled.kernels[k];
      json["kernels"].push_back({{"name", kernel.name},
                                 {"label", kernel.label},
                                 {"launches", launches[static_cast<uint32_t>(k)]},
                                 {"phases", kernel.phases.size()},
                                 {"flops", kernel.flops},
                                 {"min_bytes", kernel.min_bytes},
                                 {"scratch_bytes", kernel.scratch_bytes}});
    }
    json["commands"] = commands_json(compiled);
    json["memory_bytes"] = {{"constants", facts.constant_bytes},
                            {"inputs", facts.input_bytes},
                            {"outputs", facts.output_bytes},
                            {"temporaries", facts.temporary_bytes},
                            {"temporaries_lower_bound", facts.temporary_lower_bound_bytes},
                            {"temporaries_optimal", facts.temporary_optimal},
                            {"temporaries_pool_peak", facts.temporary_pool_peak_bytes},
                            {"temporaries_unshared", facts.temporary_unshared_bytes}};
    if (buffers_) {
      json["buffers"] = ordered_json::array();
      for (const program::Buffer& buffer : compiled.buffers)
        json["buffers"].push_back({{"value", buffer.name},
                                   {"kind", kind_name(buffer.kind)},
                                   {"bytes", buffer.bytes},
                                   {"offset", buffer.offset_bytes},
                                   {"first_command", buffer.first_command},
                                   {"last_command", buffer.last_command}});
    }
    return json;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  bool supported_ = false;
  bool header_ = false, graph_only_ = false, buffers_ = false, program_text_ = false;
};

}  // namespace

std::unique_ptr<Command> make_inspect() { return std::make_unique<Inspect>(); }

}  // namespace heddle::tools
