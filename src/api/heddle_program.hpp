// Programs and contexts of heddle.hpp, which includes this header.
#ifndef HEDDLE_API_HEDDLE_PROGRAM_HPP
#define HEDDLE_API_HEDDLE_PROGRAM_HPP

#include "heddle_model.hpp"

namespace heddle {
inline namespace HEDDLE_INLINE_NAMESPACE {

// heddle_compile_options with its size set: `options.level = "O1"; options.threads = 2;`. Strings
// belong to the caller and need only be valid during the call.
struct CompileOptions : heddle_compile_options {
  CompileOptions() : heddle_compile_options{} { struct_size = sizeof(heddle_compile_options); }
};

class Context;

// A compiled program. It no longer needs its Model; Contexts keep it alive. Any thread may use it.
class Program {
 public:
  // Opens a model or a compiled program and compiles it if needed, in one step.
  static Result<Program> open(const std::string& path, const OpenOptions& how = {},
                              const CompileOptions& options = {}) {
    HEDDLE_TRY(Program, model, Model::open(path, how));
    return model.compile(options);
  }
  static Result<Program> parse(const std::string& name, std::string_view bytes,
                               const OpenOptions& how = {}, const CompileOptions& options = {}) {
    HEDDLE_TRY(Program, model, Model::parse(name, bytes, how));
    return model.compile(options);
  }
  // Takes ownership of a handle.
  static Result<Program> adopt(heddle_program* handle) {
    Program program(handle);
    const heddle_program_info info = program.info();
    HEDDLE_TRY(Program, inputs,
               detail::ports_of<heddle_program>(handle, info.inputs, heddle_program_input,
                                                heddle_program_input_dim));
    HEDDLE_TRY(Program, outputs,
               detail::ports_of<heddle_program>(handle, info.outputs, heddle_program_output,
                                                heddle_program_output_dim));
    program.inputs_ = std::move(inputs);
    program.outputs_ = std::move(outputs);
    return program;
  }
  heddle_program* get() const { return handle_.get(); }

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  Result<Port> input(std::string_view name) const {
    HEDDLE_TRY(Port, number, number_of(inputs_, name, "input"));
    return inputs_[number];
  }
  Result<Port> output(std::string_view name) const {
    HEDDLE_TRY(Port, number, number_of(outputs_, name, "output"));
    return outputs_[number];
  }

  // Its strings live as long as the program. All zeros for a moved-from Program.
  heddle_program_info info() const {
    heddle_program_info info{};
    info.struct_size = sizeof info;
    heddle_program_get_info(get(), &info);
    return info;
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    const std::int64_t count = info().notes;
    for (std::int64_t i = 0; i < count; ++i) all.emplace_back(heddle_program_note(get(), i));
    return all;
  }
  // Steps of the compilation and their milliseconds.
  std::vector<std::pair<std::string, double>> steps() const {
    std::vector<std::pair<std::string, double>> all;
    const std::int64_t count = info().steps;
    for (std::int64_t i = 0; i < count; ++i) {
      double ms = 0;
      const char* const name = heddle_program_step(get(), i, &ms);
      all.emplace_back(name, ms);
    }
    return all;
  }
  // Waits at most so many milliseconds for background work; returns whether it is done.
  Result<bool> wait(std::int64_t most_ms) const {
    std::int32_t ready = 0;
    HEDDLE_CHECK_STATUS(bool, heddle_program_wait(get(), most_ms, &ready));
    return ready != 0;
  }
  // Writes a file that Model::open and Program::open read.
  Result<void> save(const std::string& path) const {
    return detail::checked(heddle_program_save(get(), path.c_str()));
  }
  Result<Context> context() const;

 private:
  explicit Program(heddle_program* handle) : handle_(handle) {}

  detail::Owner<heddle_program> handle_;
  std::vector<Port> inputs_, outputs_;
};

inline Result<Program> Model::compile() const { return compile(CompileOptions()); }
inline Result<Program> Model::compile(const CompileOptions& options) const {
  heddle_program* compiled = nullptr;
  HEDDLE_CHECK_STATUS(Program, heddle_compile(get(), &options, &compiled));
  return Program::adopt(compiled);
}

// The memory of one run. Used by one thread at a time, except for cancel(); Contexts of one Program
// run concurrently. It keeps the Tensors that are bound to it.
class Context {
 public:
  heddle_context* get() const { return handle_.get(); }

  // One run: takes all inputs by name, returns all outputs in new memory.
  Result<Tensors> run(const Tensors& inputs) {
    HEDDLE_TRY_VOID(Tensors, check_all_are_given(inputs));
    for (const auto& [name, tensor] : inputs) HEDDLE_TRY_VOID(Tensors, bind_input(name, tensor));
    HEDDLE_TRY_VOID(Tensors, prepare());
    Tensors results;
    const std::vector<Port> ports = outputs();
    for (std::size_t i = 0; i < ports.size(); ++i) {
      HEDDLE_TRY(Tensors, tensor, made_for(ports[i]));
      HEDDLE_CHECK_STATUS(
          Tensors, heddle_context_bind_output(get(), static_cast<std::int64_t>(i), tensor.data_));
      results.emplace(ports[i].name, std::move(tensor));
    }
    bound_outputs_ = results;
    HEDDLE_TRY_VOID(Tensors, run());
    return results;
  }

  // The same in steps, with memory that is bound once for many runs. Errors: no such port, a wrong
  // type or shape. The shape of an input sets the extents of bounded dimensions, and the shapes of
  // outputs are checked against them, so inputs must be bound first.
  Result<void> bind_input(const std::string& name, const Tensor& tensor) {
    HEDDLE_TRY(void, i, number_of(inputs_, name, "input"));
    const Port& port = inputs_[i];
    if (tensor.type() != port.type)
      return detail::failed<void>(detail::wrong("input " + name + " is " + tensor.to_string() +
                                                "; wanted " + port.to_string()));
    HEDDLE_TRY_VOID(void, set_shape(i, tensor.shape()));
    HEDDLE_CHECK_STATUS(
        void, heddle_context_bind_input(get(), static_cast<std::int64_t>(i), tensor.data()));
    bound_inputs_[port.name] = tensor;
    return detail::done();
  }
  Result<void> bind_output(const std::string& name, const Tensor& tensor) {
    const std::vector<Port> ports = outputs();
    HEDDLE_TRY(void, i, number_of(ports, name, "output"));
    const Port& port = ports[i];
    if (tensor.is_read_only())
      return detail::failed<void>(
          detail::wrong("output " + name + " is a view of const memory; it is to be written"));
    if (tensor.type() != port.type || (port.is_known && tensor.shape() != port.shape()))
      return detail::failed<void>(detail::wrong(
          "output " + name + " is " + tensor.to_string() + "; wanted " + port.to_string(),
          tensor.type() != port.type ? ErrorCode::none : ErrorCode::shape));
    HEDDLE_CHECK_STATUS(
        void, heddle_context_bind_output(get(), static_cast<std::int64_t>(i), tensor.data_));
    bound_outputs_[port.name] = tensor;
    return detail::done();
  }
  // Finds or compiles the program for the bound inputs; outputs() then has the shapes.
  Result<void> prepare() { return detail::checked(heddle_context_prepare(get())); }
  // It is also an error if inputs were bound at other extents after an output.
  Result<void> run() {
    if (is_bounded_) HEDDLE_TRY_VOID(void, check_bound_outputs());
    return detail::checked(heddle_context_run(get()));
  }
  // From any thread: the current run ends with Cancelled; without a current run, the next one.
  void cancel() const { heddle_context_cancel(get()); }

  // The outputs as the next run writes them.
  std::vector<Port> outputs() const {
    std::vector<Port> ports;
    const std::int64_t count = heddle_context_output_count(get());
    for (std::int64_t i = 0; i < count; ++i) {
      heddle_port from{};
      from.struct_size = sizeof from;
      heddle_context_output(get(), i, &from);
      ports.push_back(detail::port_of(from));
    }
    return ports;
  }

 private:
  friend class Program;
  Context(heddle_context* handle, const std::vector<Port>& inputs)
      : handle_(handle), inputs_(inputs) {
    for (const Port& port : inputs_) {
      bool is_open = false;
      for (const Dim& dim : port.dims) is_open = is_open || dim.is_bounded();
      is_bounded_ = is_bounded_ || is_open;
      shapes_.push_back(is_open ? Shape{-1} : port.shape());  // -1: not set yet
    }
  }

  Result<void> check_all_are_given(const Tensors& given) const {
    for (const auto& [name, tensor] : given) HEDDLE_TRY_VOID(void, has_input(name));
    std::string missing;
    for (const Port& port : inputs_)
      if (given.count(port.name) == 0 && (port.alias.empty() || given.count(port.alias) == 0))
        missing += (missing.empty() ? "" : ", ") + port.name;
    if (missing.empty()) return detail::done();
    return detail::failed<void>(detail::wrong("no value for input " + missing));
  }
  Result<void> has_input(const std::string& name) const {
    HEDDLE_TRY(void, number, number_of(inputs_, name, "input"));
    static_cast<void>(number);
    return detail::done();
  }

  // Sets the shape of an input if it has changed. Error: this program does not allow it.
  Result<void> set_shape(std::size_t i, const Shape& shape) {
    if (shape == shapes_[i]) return detail::done();
    const auto rank = static_cast<std::int64_t>(shape.size());
    heddle_status* const status =
        inputs_[i].dims.size() != shape.size()
            ? nullptr
            : heddle_context_set_input_shape(get(), static_cast<std::int64_t>(i), shape.data(),
                                             rank);
    if (inputs_[i].dims.size() == shape.size() && status == nullptr) {
      shapes_[i] = shape;
      return detail::done();
    }
    std::string message = "input " + inputs_[i].name + " is " + to_string(inputs_[i].type, shape) +
                          "; wanted " + inputs_[i].to_string();
    if (status != nullptr) message += std::string(": ") + heddle_status_message(status);
    heddle_status_free(status);
    return detail::failed<void>(detail::wrong(std::move(message), ErrorCode::shape));
  }

  Result<void> check_bound_outputs() const {
    for (const Port& port : outputs()) {
      const auto bound = bound_outputs_.find(port.name);
      if (bound != bound_outputs_.end() && bound->second.shape() != port.shape())
        return detail::failed<void>(detail::wrong("output " + port.name + " is bound to " +
                                                      bound->second.to_string() + "; wanted " +
                                                      port.to_string() + " for these inputs",
                                                  ErrorCode::shape));
    }
    return detail::done();
  }

  static Result<Tensor> made_for(const Port& port) {
    if (port.type == Type::token) return Tensor();
    return Tensor::uninitialised(port.type, port.shape());
  }

  detail::Owner<heddle_context> handle_;
  std::vector<Port> inputs_;
  std::vector<Shape> shapes_;  // of inputs, as set last
  bool is_bounded_ = false;
  Tensors bound_inputs_, bound_outputs_;
};

inline Result<Context> Program::context() const {
  heddle_context* made = nullptr;
  HEDDLE_CHECK_STATUS(Context, heddle_context_create(get(), &made));
  return Context(made, inputs_);
}

}  // namespace HEDDLE_INLINE_NAMESPACE
}  // namespace heddle

#endif  // HEDDLE_API_HEDDLE_PROGRAM_HPP
