#include "session.h"

#include <nanobind/stl/string.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "failure.h"
#include "family.h"
#include "interrupt.h"
#include "log.h"
#include "options.h"
#include "slot.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

std::atomic<int> forks = 0;

}  // namespace

// Ctrl-C and the caller's own function. It is called without the GIL, also by runs that compile.
struct Session::Progress {
  nb::object function;
  nb::object error;  // what the function has thrown

  static int32_t call(const heddle_compile_progress* now, void* context) {
    auto& self = *static_cast<Progress*>(context);
    if (Interrupt::asked()) return 1;
    if (!self.function.is_valid()) return 0;
    const nb::gil_scoped_acquire gil;
    if (self.error.is_valid()) return 1;
    try {
      const nb::object stop = self.function(now->step, now->done, now->steps, now->seconds);
      return nb::cast<bool>(nb::bool_(stop)) ? 1 : 0;
    } catch (nb::python_error& error) {
      self.error = nb::borrow(error.value());
      return 1;
    }
  }
};

void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

Session::Session(nb::handle model, const std::string& name, const nb::dict& open_options,
                 const nb::dict& compile_options, nb::handle late, nb::handle progress)
    : source_(nb::borrow(model)), name_(name), open_(open_options), made_in_(forks) {
  try {
    open(late);
    compile(compile_options, progress);
    inputs_ = input_ports(program_);
    outputs_ = output_ports(program_);
    if (late_) {
      const nb::dict fixed(open_["dims"]);
      open_dims(model_, nb::len(nb::object(open_["values"])) > 0, fixed, inputs_);
      open_dims(model_, false, fixed, outputs_);
    } else {
      for (const Port& port : inputs_)
        for (const Dim& dim : port.dims) bounded_ = bounded_ || dim.least < dim.most;
      source_.reset();  // it may be as large as the model
      open_ = nb::dict();
    }
    if (bounded_) find_times(program_, inputs_);
    if (bounded_) find_times(program_, outputs_);
  } catch (...) {
    heddle_program_free(program_);
    heddle_model_free(model_);
    throw;
  }
}

Session::~Session() {
  if (made_in_ != forks) {  // its workers are threads of another process
    for (std::unique_ptr<Slot>& slot : idle_) static_cast<void>(slot.release());
    return;
  }
  idle_.clear();
  heddle_program_free(program_);
  heddle_model_free(model_);
}

bool Session::has_unbound() const { return heddle_model_unbound(model_, 0).name != nullptr; }

heddle_status* Session::read(OpenOptions& options, heddle_model** model) const {
  if (nb::isinstance<nb::tuple>(source_)) return open_family(source_, name_, options.get(), model);
  if (!nb::isinstance<nb::bytes>(source_)) {
    const auto path = nb::cast<std::string>(source_);
    const nb::gil_scoped_release unlocked;
    return heddle_model_open(path.c_str(), options.get(), model);
  }
  const char* const bytes = PyBytes_AsString(source_.ptr());
  const auto size = static_cast<size_t>(PyBytes_Size(source_.ptr()));
  const nb::gil_scoped_release unlocked;
  return heddle_model_parse(name_.c_str(), bytes, size, options.get(), model);
}

void Session::open(nb::handle late) {
  const LogDelivery delivery;
  OpenOptions options(open_);
  const auto opened = [&](bool as_late) {
    options.get()->late = as_late ? 1 : 0;
    return read(options, &model_);
  };
  const bool has_values = options.get()->value_count > 0;
  if (!late.is_none() || has_values || options.get()->bound_count > 0) {
    late_ = has_values || (!late.is_none() && nb::cast<bool>(late));
    return check(opened(late_));
  }
  // With all shapes known there is one program, and a run has nothing to find out. Where they are
  // not, the model either has dimensions that nothing bound, or cannot be opened like that.
  heddle_status* error = opened(false);
  if (error == nullptr && !has_unbound()) return;
  const bool may_be_late = error == nullptr || heddle_status_kind(error) == HEDDLE_USER_ERROR;
  if (!may_be_late || heddle_status_code(error) == HEDDLE_CODE_UNSUPPORTED) return check(error);
  heddle_model* const plain = model_;
  model_ = nullptr;
  heddle_status* const late_error = opened(true);
  // Opened like this, a model may keep its errors for the first run.
  const bool depends = error != nullptr && heddle_status_code(error) == HEDDLE_CODE_VALUE;
  late_ = late_error == nullptr && (depends || has_unbound());
  if (late_) {
    heddle_status_free(error);
    heddle_model_free(plain);
  } else {  // such as HLO, whose shapes never come late
    heddle_model_free(std::exchange(model_, plain));
    heddle_status* const why = depends && late_error != nullptr ? late_error : error;
    heddle_status_free(why == late_error ? error : late_error);
    check(why);
  }
}

void Session::compile(const nb::dict& from, nb::handle progress) {
  const LogDelivery delivery;
  CompileOptions options(from);
  progress_ = std::make_unique<Progress>();
  if (!progress.is_none()) progress_->function = nb::borrow(progress);
  options.get()->consume_model = 1;
  options.get()->progress = Progress::call;
  options.get()->progress_context = progress_.get();
  // A compilation in the background calls when this has returned.
  if (options.get()->background != 0) options.get()->progress = nullptr;
  const Interrupt interrupt(nullptr);
  heddle_status* status = nullptr;
  {
    const nb::gil_scoped_release unlocked;
    status = heddle_compile(model_, options.get(), &program_);
  }
  end(status, interrupt.was_asked());
}

void Session::end(heddle_status* status, bool interrupted) const {
  if (heddle_status_kind(status) != HEDDLE_CANCELLED) return check(status);
  const bool raised = interrupted && PyErr_CheckSignals() != 0;
  if (!raised && progress_->error.is_valid()) {
    const nb::object error = std::exchange(progress_->error, {});
    PyErr_SetObject(error.type().ptr(), error.ptr());
  } else if (!raised) {
    return check(status);
  }
  heddle_status_free(status);
  throw nb::python_error();
}

// Has a context as long as a run takes.
class Lease {
 public:
  explicit Lease(Session& session) : session_(session) {
    {
      const std::lock_guard lock(session.mutex_);
      if (!session.idle_.empty()) {
        slot_ = std::move(session.idle_.back());
        session.idle_.pop_back();
        session.busy_.push_back(slot_.get());
        return;
      }
    }
    slot_ = std::make_unique<Slot>(session);
    const std::lock_guard lock(session.mutex_);
    session.busy_.push_back(slot_.get());
  }
  ~Lease() {
    slot_->release();
    const std::lock_guard lock(session_.mutex_);
    std::erase(session_.busy_, slot_.get());
    if (slot_->is_good()) session_.idle_.push_back(std::move(slot_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Slot* operator->() const { return slot_.get(); }

 private:
  Session& session_;
  std::unique_ptr<Slot> slot_;
};

nb::list Session::run(nb::handle names, nb::handle feed, nb::handle out) {
  if (made_in_ != forks)
    fail("Error",
         "this session was made before the process forked, and its threads stayed behind; make it "
         "in the child, or start children by multiprocessing's 'spawn'");
  const LogDelivery delivery;
  const Lease lease(*this);
  return lease->run(names, feed, out);
}

void Session::cancel() {
  const std::lock_guard lock(mutex_);
  for (Slot* const slot : busy_) slot->cancel();
}

bool Session::wait(int64_t most_ms) {
  int32_t ready = 0;
  heddle_status* status = nullptr;
  {
    const nb::gil_scoped_release unlocked;
    status = heddle_program_wait(program_, most_ms, &ready);
  }
  check(status);
  return ready != 0;
}

void Session::save(const std::string& path) {
  heddle_status* status = nullptr;
  {
    const nb::gil_scoped_release unlocked;
    status = heddle_program_save(program_, path.c_str());
  }
  check(status);
}

nb::list Session::inputs() const {
  nb::list all;
  for (const Port& port : inputs_) all.append(describe(port));
  return all;
}

void Session::open_outputs() {
  outputs_are_open_ = true;
  bool unnamed = false;
  for (const Port& port : outputs_)
    for (const Dim& dim : port.dims) unnamed = unnamed || dim.least == dim.most;
  if (!late_ || !unnamed || open_outputs_at(2) || open_outputs_at(64)) return;
  for (Port& port : outputs_)  // nothing is known of them
    for (Dim& dim : port.dims) dim.least = 0, dim.most = kNoBound;
}

// Whether the model can be imported for this extent of all its open dimensions.
bool Session::open_outputs_at(int64_t extent) {
  nb::dict dims, shapes, options;
  options.update(open_);
  dims.update(nb::dict(open_["dims"]));
  shapes.update(nb::dict(open_["shapes"]));
  for (const Port& port : inputs_) {
    nb::list shape;
    bool has_unnamed = false;
    for (const Dim& dim : port.dims) {
      const bool is_open = dim.least < dim.most;
      has_unnamed = has_unnamed || (is_open && dim.name.empty());
      if (is_open && !dim.name.empty()) dims[dim.name.c_str()] = extent;
      shape.append(is_open ? extent : dim.extent);
    }
    if (has_unnamed) shapes[port.name.c_str()] = shape;
  }
  options["dims"] = dims;
  options["shapes"] = shapes;
  OpenOptions wanted(options);
  heddle_model* model = nullptr;
  heddle_status* const status = read(wanted, &model);
  heddle_status_free(status);
  if (status != nullptr) return false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    heddle_port port{};
    port.struct_size = sizeof port;
    heddle_model_output(model, static_cast<int64_t>(i), &port);
    for (size_t d = 0; d < outputs_[i].dims.size(); ++d) {
      Dim& dim = outputs_[i].dims[d];
      const bool same =
          port.rank == static_cast<int64_t>(outputs_[i].dims.size()) && port.dims[d] == dim.extent;
      if (!same) dim.least = 0, dim.most = kNoBound;
    }
  }
  heddle_model_free(model);
  return true;
}

nb::list Session::outputs() {
  if (!outputs_are_open_) open_outputs();
  nb::list all;
  for (const Port& port : outputs_) all.append(describe(port));
  return all;
}

nb::list Session::notes() const {
  nb::list all;
  heddle_program_info info{};
  info.struct_size = sizeof info;
  heddle_program_get_info(program_, &info);
  for (int64_t i = 0; i < info.notes; ++i) all.append(heddle_program_note(program_, i));
  return all;
}

nb::list Session::unbound() const {
  nb::list all;
  for (int64_t i = 0;; ++i) {
    const heddle_dim dim = heddle_model_unbound(model_, i);
    if (dim.name == nullptr) return all;
    all.append(nb::make_tuple(dim.name, dim.size));
  }
}

nb::dict Session::origin() const {
  heddle_model_origin from{};
  from.struct_size = sizeof from;
  heddle_model_get_origin(model_, &from);
  const auto text = [](const char* value) {
    return nb::steal(
        PyUnicode_DecodeUTF8(value, static_cast<Py_ssize_t>(std::strlen(value)), "replace"));
  };
  nb::dict all, opsets, metadata;
  for (int64_t i = 0; i < from.opsets; ++i) {
    const heddle_opset opset = heddle_model_opset(model_, i);
    opsets[text(opset.domain)] = opset.version;
  }
  for (int64_t i = 0; i < from.metadata; ++i) {
    const char *key = nullptr, *value = nullptr;
    check(heddle_model_metadata(model_, i, &key, &value));
    metadata[text(key)] = text(value);
  }
  all["producer"] = text(from.producer);
  all["producer_version"] = text(from.producer_version);
  all["domain"] = text(from.domain);
  all["description"] = text(from.description);
  all["graph"] = text(from.graph);
  all["graph_description"] = text(from.graph_description);
  all["ir_version"] = from.ir_version;
  all["version"] = from.version;
  all["opsets"] = opsets;
  all["metadata"] = metadata;
  return all;
}

nb::dict Session::info() const {
  heddle_program_info info{};
  info.struct_size = sizeof info;
  heddle_program_get_info(program_, &info);
  heddle_model_info model{};
  model.struct_size = sizeof model;
  heddle_model_get_info(model_, &model);
  nb::dict all;
  const auto text = [](const char* value) { return nb::str(value == nullptr ? "" : value); };
  all["name"] = text(model.name);
  all["format"] = text(model.format);
  all["device"] = text(info.device);
  all["isa"] = text(info.isa);
  all["target"] = text(info.target);
  all["level"] = text(info.level);
  all["precision"] = text(info.precision);
  all["options"] = text(info.options);
  all["bucket"] = text(info.bucket);
  all["threads"] = info.threads;
  all["cache_warm"] = info.cache_warm != 0;
  all["pending"] = info.pending != 0;
  all["import_ms"] = model.import_ms;
  all["compile_ms"] = info.compile_ms;
  all["compilations"] = info.compilations;
  all["kernels"] = info.kernels;
  all["launches"] = info.launches;
  all["flops"] = info.flops;
  all["constant_bytes"] = info.constant_bytes;
  all["temporary_bytes"] = info.temporary_bytes;
  return all;
}

}  // namespace heddle::python
