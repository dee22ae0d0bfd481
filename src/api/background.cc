#include "api/background.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "api/c_status.h"
#include "compiler/compiler.h"
#include "hlo/module.h"

namespace heddle::api {
namespace {

// How a change of the level may affect results.
const char* swap_class(const Model& model) {
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    const tensor::Tolerance& t = model.tolerance(i);
    if (t.absolute != 0 || t.relative != 0 || t.relative_to_max != 0) return "rounding";
  }
  return "bits";
}

class BackgroundProgram : public Program, public std::enable_shared_from_this<BackgroundProgram> {
 public:
  BackgroundProgram(std::shared_ptr<Program> first, const Model& model) : now_(std::move(first)) {
    inputs_ = now_->inputs();
    outputs_ = now_->outputs();
    first_facts_ = now_->facts();
    first_facts_.swap = swap_class(model);
    failed_facts_ = first_facts_;
    first_facts_.pending = true;
  }
  ~BackgroundProgram() override {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void start(std::unique_ptr<Model> model, CompileOptions options) {
    options.background = false;
    options.consume_model = true;
    options.progress = [this, asked = options.progress](const CompileProgress& progress) {
      return !stopped_ && (!asked || asked(progress));
    };
    thread_ = std::thread([this, model = std::move(model), options = std::move(options)] {
      Result<std::shared_ptr<Program>> made;
      try {
        made = compile(*model, options);
      } catch (...) {
        made = tl::unexpected(error_of_exception("compilation in the background"));
      }
      if (made)
        if (Status shared = (*made)->use_states(now_->states()); !shared)
          made = tl::unexpected(shared.error());
      const std::lock_guard lock(mutex_);
      if (made) {
        first_ = std::exchange(now_, std::move(*made));  // contexts and texts of it are in use
        second_facts_ = now_->facts();
        second_facts_.swap = first_facts_.swap;
        has_second_.store(true, std::memory_order_release);
      } else {
        error_ = made.error();
      }
      done_ = true;
      changed_.notify_all();
    });
  }

  const ProgramFacts& facts() const override {
    const std::lock_guard lock(mutex_);
    if (error_) return failed_facts_;
    return first_ ? second_facts_ : first_facts_;
  }
  const std::vector<std::string>& notes() const override { return now()->notes(); }
  const std::vector<std::pair<std::string, double>>& steps() const override {
    return now()->steps();
  }
  const compiler::Report& report() const override { return now()->report(); }
  const program::Program* compiled() const override { return now()->compiled(); }
  const std::vector<Port>& state_ports() const override { return now()->state_ports(); }
  std::shared_ptr<runtime::StateArrays> states() const override { return now()->states(); }

  Status save(const std::string& path) override {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return done_; });
      if (error_) return tl::unexpected(*error_);
    }
    return now()->save(path);
  }
  Result<bool> wait(std::chrono::milliseconds most) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, most, [&] { return done_; })) return false;
    if (error_) return tl::unexpected(*error_);
    return true;
  }
  Result<std::unique_ptr<Context>> make_context(
      std::shared_ptr<runtime::Cancellation> cancellation) override;

  bool has_second() const { return has_second_.load(std::memory_order_acquire); }
  // The result lives as long as this object.
  Program* now() const {
    const std::lock_guard lock(mutex_);
    return now_.get();
  }

 private:
  mutable std::mutex mutex_;  // protects the following
  std::condition_variable changed_;
  std::shared_ptr<Program> now_, first_;  // first_: the replaced program, if any
  ProgramFacts first_facts_, second_facts_, failed_facts_;
  std::optional<Error> error_;
  bool done_ = false;

  std::atomic<bool> has_second_{false}, stopped_{false};
  std::thread thread_;
};

class BackgroundContext : public Context {
 public:
  BackgroundContext(std::shared_ptr<BackgroundProgram> program, std::unique_ptr<Context> first,
                    bool is_second, std::shared_ptr<runtime::Cancellation> cancellation)
      : Context(std::move(cancellation)),
        program_(std::move(program)),
        is_second_(is_second),
        inputs_(program_->inputs().size()),
        outputs_(program_->outputs().size()),
        context_(std::move(first)) {}

  Status bind_input(int64_t number, const void* data) override {
    HEDDLE_RETURN_IF_ERROR(context_->bind_input(number, data));
    inputs_[static_cast<size_t>(number)] = data;
    return {};
  }
  Status bind_output(int64_t number, void* data) override {
    HEDDLE_RETURN_IF_ERROR(context_->bind_output(number, data));
    outputs_[static_cast<size_t>(number)] = data;
    return {};
  }
  Status run() override {
    if (!is_second_ && program_->has_second()) HEDDLE_RETURN_IF_ERROR(go_over());
    return context_->run();
  }
  void set_profile(bool on) override {
    profile_ = on;
    context_->set_profile(on);
  }
  void reset_profile() override { context_->reset_profile(); }
  int64_t command_count() const override { return context_->command_count(); }
  CommandReport command(int64_t number) const override { return context_->command(number); }

 private:
  Status go_over() {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Context> next,
                            program_->now()->make_context(cancellation_));
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i])
        HEDDLE_RETURN_IF_ERROR(next->bind_input(static_cast<int64_t>(i), *inputs_[i]));
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i])
        HEDDLE_RETURN_IF_ERROR(next->bind_output(static_cast<int64_t>(i), *outputs_[i]));
    next->set_profile(profile_);
    context_ = std::move(next);
    is_second_ = true;
    return {};
  }

  std::shared_ptr<BackgroundProgram> program_;  // outlives the contexts
  bool is_second_, profile_ = false;
  std::vector<std::optional<const void*>> inputs_;  // bindings
  std::vector<std::optional<void*>> outputs_;
  std::unique_ptr<Context> context_;
};

Result<std::unique_ptr<Context>> BackgroundProgram::make_context(
    std::shared_ptr<runtime::Cancellation> cancellation) {
  const bool is_second = has_second();
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Context> context, now()->make_context(cancellation));
  return std::make_unique<BackgroundContext>(shared_from_this(), std::move(context), is_second,
                                             std::move(cancellation));
}

}  // namespace

Result<std::shared_ptr<Program>> compile_in_background(Model& model,
                                                       const CompileOptions& options) {
  CompileOptions quick = options;
  quick.level = "O0";
  quick.background = quick.consume_model = false;
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<Program> first, Program::compile(model, quick));
  const auto program = std::make_shared<BackgroundProgram>(std::move(first), model);
  program->start(model.clone(), options);
  return program;
}

}  // namespace heddle::api
