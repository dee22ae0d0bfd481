// Programs of device "interp": the reference interpreter with the same interface.
#include <algorithm>
#include <mutex>

#include "api/compiled.h"
#include "api/host_interp.h"
#include "api/index_guard.h"
#include "base/trace.h"
#include "hlo/module.h"
#include "interp/interp.h"
#include "opt/random_draw.h"

namespace heddle::api {
namespace {

class InterpretedProgram : public Program, public std::enable_shared_from_this<InterpretedProgram> {
 public:
  InterpretedProgram(std::unique_ptr<hlo::Module> module, const Model& model, bool wide)
      : module_(std::move(module)), wide_(wide) {
    inputs_ = model.inputs();
    outputs_ = model.outputs();
    index_checks_ = model.index_checks();
    notes_ = model.notes();
    facts_.device = wide ? "interp:f64" : "interp";
    facts_.level = "none";
    facts_.precision = wide ? "f64" : "f32";
    facts_.isa = "none";
    for (const Port& port : inputs_) facts_.input_bytes += port.bytes;
    for (const Port& port : outputs_) facts_.output_bytes += port.bytes;
    for (const auto& computation : module_->computations())
      for (const hlo::Instr* instr : computation->instrs()) {
        if (instr->is(hlo::Opcode::constant)) facts_.constant_bytes += instr->literal().bytes();
        draws_ = draws_ || opt::is_draw(instr);
      }
    hlo::NodeList nodes;
    nodes.add(*module_->entry());
    for (const std::string_view node : nodes.names()) nodes_.emplace_back(node);
  }

  // Runs that draw random numbers take turns: each continues from the last run that succeeded.
  Result<tensor::Literal> run(const std::vector<tensor::Literal>& arguments,
                              runtime::Cancellation& cancellation) {
    interp::Options options;
    options.widen = wide_;
    if (!draws_) return interp::evaluate(*module_, arguments, options);
    const std::scoped_lock turn(turn_);
    if (cancellation.take()) return cancelled_error("cancelled");
    interp::RandomState random = random_;
    options.random = &random;
    HEDDLE_ASSIGN_OR_RETURN(tensor::Literal result, interp::evaluate(*module_, arguments, options));
    random_ = random;
    return result;
  }

  const program::Program* compiled() const override { return nullptr; }
  Status save(const std::string& path) override {
    return user_error("{}: the interpreter does not produce a program; compile for cpu", path);
  }
  Result<std::unique_ptr<Context>> make_context(
      std::shared_ptr<runtime::Cancellation> cancellation) override;

  const hlo::Module& module() const { return *module_; }
  const std::vector<std::string>& nodes() const { return nodes_; }

 private:
  std::unique_ptr<const hlo::Module> module_;
  std::vector<std::string> nodes_;  // all model nodes
  bool wide_, draws_ = false;
  std::mutex turn_;
  interp::RandomState random_;
};

class InterpretedContext : public Context {
 public:
  InterpretedContext(std::shared_ptr<InterpretedProgram> program,
                     std::shared_ptr<runtime::Cancellation> cancellation)
      : Context(std::move(cancellation)),
        program_(std::move(program)),
        guard_(*program_),
        inputs_(program_->inputs().size()),
        outputs_(program_->outputs().size()),
        input_bound_(inputs_.size()),
        output_bound_(outputs_.size()) {
    for (const tensor::IndexCheck& check : program_->index_checks())
      if (check.input < 0) hidden_.emplace_back(tensor::hidden_shape(check));
    for (const std::string& node : program_->nodes()) nodes_.push_back(node.c_str());
  }

  Status bind_input(int64_t number, const void* data) override {
    HEDDLE_RETURN_IF_ERROR(bind(number, data, inputs_, input_bound_, "input"));
    guard_.bound(number, data);
    return {};
  }
  std::vector<tensor::IndexCheck>* index_checks() override { return &guard_.checks(); }
  Status bind_output(int64_t number, void* data) override {
    return bind(number, data, outputs_, output_bound_, "output");
  }

  Status run() override {
    HEDDLE_RETURN_IF_ERROR(check_bound(program_->inputs(), inputs_, input_bound_, "input"));
    HEDDLE_RETURN_IF_ERROR(check_bound(program_->outputs(), outputs_, output_bound_, "output"));
    // The reference interpreter cannot be stopped during a run.
    if (cancellation_->take()) return cancelled_error("cancelled");
    HEDDLE_RETURN_IF_ERROR(guard_.before());
    const int64_t begin = trace::now_ns();
    HEDDLE_ASSIGN_OR_RETURN(
        const tensor::Literal result,
        program_->run(view_arguments(program_->module(), inputs_), *cancellation_));
    std::vector<void*> leaves = outputs_;
    for (tensor::Literal& hidden : hidden_) leaves.push_back(hidden.mutable_data());
    copy_result(result, leaves);
    HEDDLE_RETURN_IF_ERROR(guard_.after([&](size_t number) { return hidden_[number].data(); }));
    if (profile_) {
      const int64_t took = trace::now_ns() - begin;
      min_ns_ = count_ == 0 ? took : std::min(min_ns_, took);
      total_ns_ += took;
      ++count_;
    }
    return {};
  }

  void set_profile(bool on) override { profile_ = on; }
  void reset_profile() override { count_ = total_ns_ = min_ns_ = 0; }
  int64_t command_count() const override { return 1; }
  CommandReport command(int64_t) const override {
    CommandReport report;
    report.name = program_->module().name().c_str();
    report.operators = "all";
    report.kind = report.label = "host";
    report.count = count_;
    report.total_ns = total_ns_;
    report.min_ns = min_ns_;
    report.nodes = nodes_;
    return report;
  }

 private:
  template <typename Pointer>
  Status bind(int64_t number, Pointer data, std::vector<Pointer>& pointers,
              std::vector<bool>& bound, const char* what) const {
    if (number < 0 || number >= static_cast<int64_t>(pointers.size()))
      return user_error("program {}: no {} {}, it has {}", program_->module().name(), what, number,
                        pointers.size());
    pointers[static_cast<size_t>(number)] = data;
    bound[static_cast<size_t>(number)] = true;
    return {};
  }

  template <typename Pointer>
  Status check_bound(const std::vector<Port>& ports, const std::vector<Pointer>& pointers,
                     const std::vector<bool>& bound, const char* what) const {
    for (size_t i = 0; i < ports.size(); ++i)
      if (!bound[i] || (pointers[i] == nullptr && ports[i].bytes > 0))
        return user_error("program {}: {} {} is not bound to memory", program_->module().name(),
                          what, ports[i].name);
    return {};
  }

  std::shared_ptr<InterpretedProgram> program_;
  IndexGuard guard_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<bool> input_bound_, output_bound_;
  std::vector<tensor::Literal> hidden_;  // hidden outputs for checks, after the others
  std::vector<const char*> nodes_;       // belong to the program
  bool profile_ = false;
  int64_t count_ = 0, total_ns_ = 0, min_ns_ = 0;
};

Result<std::unique_ptr<Context>> InterpretedProgram::make_context(
    std::shared_ptr<runtime::Cancellation> cancellation) {
  return std::make_unique<InterpretedContext>(shared_from_this(), std::move(cancellation));
}

}  // namespace

Result<std::shared_ptr<Program>> interpret(std::unique_ptr<hlo::Module> module, const Model& model,
                                           bool wide) {
  const std::vector<std::string> refused = interp::unsupported(*module);
  if (!refused.empty()) {
    std::string names;
    for (size_t i = 0; i < refused.size() && i < 8; ++i) names += (i ? ", " : "") + refused[i];
    return error_of(ErrorKind::unsupported, "{}: the interpreter lacks: {}{}", model.name(), names,
                    refused.size() > 8 ? fmt::format(" and {} more", refused.size() - 8) : "");
  }
  return std::make_shared<InterpretedProgram>(std::move(module), model, wide);
}

}  // namespace heddle::api
