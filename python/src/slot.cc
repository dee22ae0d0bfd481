#include "slot.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "failure.h"
#include "interrupt.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

using Clock = std::chrono::steady_clock;

// Runs that take longer listen to Ctrl-C.
constexpr double kLongSeconds = 0.01;

nb::object tuple_of(const std::vector<int64_t>& dims) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(dims.size())));
  check_python(tuple.is_valid());
  for (size_t d = 0; d < dims.size(); ++d)
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(d), PyLong_FromLongLong(dims[d]));
  return tuple;
}

nb::object helper(const char* name) { return nb::module_::import_("heddle._arrays").attr(name); }

}  // namespace

Slot::Slot(const Session& session) : session_(session) {
  heddle_status* status = nullptr;
  {
    const nb::gil_scoped_release unlocked;
    status = heddle_context_create(session.program_, &context_);
  }
  check(status);
  const size_t count = session.inputs_.size();
  for (size_t i = 0; i < count; ++i) inputs_.emplace_back();
  texts_.resize(count);
  text_dims_.resize(count);
  shapes_.resize(count);
  if (!session.late_) find_outputs();
}

Slot::~Slot() { heddle_context_free(context_); }

void Slot::cancel() {
  cancelled_ = true;
  heddle_context_cancel(context_);
}

void Slot::release() {
  for (Input& input : inputs_) input.release();
  for (nb::object& memory : made_) memory.reset();
  for (nb::object& array : given_) array.reset();
  given_memory_.clear();
}

// ---- inputs ----

void Slot::complain_of_names(PyObject* feed) const {
  std::string all, missing;
  for (const Port& port : session_.inputs_) {
    all += (all.empty() ? "" : ", ") + port.name;
    const bool there = PyDict_Contains(feed, port.key.ptr()) == 1 ||
                       PyDict_Contains(feed, port.alias_key.ptr()) == 1;
    if (!there) missing += (missing.empty() ? "" : ", ") + port.name;
  }
  if (!missing.empty()) fail("MissingInput", "no value for " + missing + "; the inputs are " + all);
  for (const auto& [key, value] : nb::borrow<nb::dict>(feed)) {
    bool known = false;
    for (const Port& port : session_.inputs_)
      known = known || key.equal(port.key) || key.equal(port.alias_key);
    if (!known)
      fail("UnknownName", std::string("no input ") + nb::repr(key).c_str() + "; " +
                              (all.empty() ? "there are none" : "the inputs are " + all));
  }
  fail("UnknownName", "an input is given twice, by its name and its other name");
}

void Slot::read_dict(PyObject* feed) {
  const auto& ports = session_.inputs_;
  for (size_t i = 0; i < ports.size(); ++i) {
    PyObject* value = PyDict_GetItemWithError(feed, ports[i].key.ptr());
    if (value == nullptr && !ports[i].alias.empty())
      value = PyDict_GetItemWithError(feed, ports[i].alias_key.ptr());
    if (value == nullptr) complain_of_names(feed);
    read_one(i, value);
  }
  if (static_cast<size_t>(PyDict_Size(feed)) != ports.size()) complain_of_names(feed);
}

void Slot::read(nb::handle feed) {
  if (PyDict_Check(feed.ptr())) return read_dict(feed.ptr());
  if (PyMapping_Check(feed.ptr()) != 0 && PyTuple_Check(feed.ptr()) == 0 &&
      PyList_Check(feed.ptr()) == 0) {
    const nb::object dict =
        nb::steal(PyObject_CallFunctionObjArgs((PyObject*)&PyDict_Type, feed.ptr(), nullptr));
    check_python(dict.is_valid());
    return read_dict(dict.ptr());
  }
  const size_t count = nb::len(feed), wanted = session_.inputs_.size();
  if (count != wanted) {
    std::string all;
    for (const Port& port : session_.inputs_) all += (all.empty() ? "" : ", ") + port.name;
    fail("MissingInput", std::to_string(count) + " inputs; wanted " + std::to_string(wanted) +
                             (all.empty() ? "" : ": " + all));
  }
  for (size_t i = 0; i < count; ++i) {
    const nb::object value = feed[i];
    read_one(i, value);
  }
}

void Slot::read_one(size_t i, nb::handle value) {
  const Port& port = session_.inputs_[i];
  if (port.is_text) return read_texts(i, value);
  Input& input = inputs_[i];
  input.read(value, port.type);
  if (input.type() != port.type)
    fail("InputError", "input " + port.name + " is " +
                           shape_text(input.type(), input.dims(), input.rank()) + "; wanted " +
                           heddle_type_name(port.type));
  check_shape(i);
}

void Slot::check_shape(size_t i) {
  const Port& port = session_.inputs_[i];
  const bool is_text = port.is_text;
  const int64_t* const dims = is_text ? text_dims_[i].data() : inputs_[i].dims();
  const size_t rank = is_text ? text_dims_[i].size() : static_cast<size_t>(inputs_[i].rank());
  bool fits = rank == port.dims.size();
  for (size_t d = 0; fits && d < rank; ++d) {
    const Dim& dim = port.dims[d];
    fits = dim.least < dim.most ? dims[d] >= 0 && dims[d] <= dim.most : dims[d] == dim.extent;
  }
  if (fits) return;
  std::string wanted;
  for (const Dim& dim : port.dims) {
    wanted += wanted.empty() ? "" : ",";
    if (dim.least == dim.most) {
      wanted += std::to_string(dim.extent);
      continue;
    }
    wanted += dim.name.empty() ? "?" : dim.name;
    if (dim.most != kNoBound) wanted += "<=" + std::to_string(dim.most);
  }
  fail("ShapeError", "input " + port.name + " is " + shape_text(port.type, dims, rank) +
                         "; wanted " + heddle_type_name(port.type) + "[" + wanted + "]");
}

// Strings are numbers to the program.
void Slot::read_texts(size_t i, nb::handle value) {
  const nb::object flat = helper("flat_texts")(value);  // (list of bytes, extents)
  std::vector<uint32_t>& ids = texts_[i];
  ids.clear();
  for (const nb::handle word : nb::cast<nb::list>(flat[0])) {
    uint32_t id = 0;
    check(heddle_model_text_id(session_.model_, PyBytes_AsString(word.ptr()),
                               static_cast<size_t>(PyBytes_Size(word.ptr())), &id));
    ids.push_back(id);
  }
  text_dims_[i].clear();
  for (const nb::handle extent : nb::iter(flat[1]))
    text_dims_[i].push_back(nb::cast<int64_t>(extent));
  check_shape(i);
}

bool Slot::set_shapes() {
  bool changed = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool is_text = session_.inputs_[i].is_text;
    const int64_t* const dims = is_text ? text_dims_[i].data() : inputs_[i].dims();
    const size_t rank = session_.inputs_[i].dims.size();
    std::vector<int64_t>& shape = shapes_[i];
    if (shape.size() == rank && std::memcmp(shape.data(), dims, rank * sizeof *dims) == 0 &&
        !outputs_.empty())
      continue;
    changed = true;
    if (session_.late_)
      check(heddle_context_set_input_shape(context_, static_cast<int64_t>(i), dims,
                                           static_cast<int64_t>(rank)));
    shape.assign(dims, dims + rank);
  }
  return changed;
}

// Of bounded dimensions, from the shapes of the inputs.
void Slot::set_extents() {
  Extents extents;
  for (const bool sums : {false, true})
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Port& port = session_.inputs_[i];
      for (size_t d = 0; d < port.dims.size(); ++d) {
        const Dim& dim = port.dims[d];
        if (dim.least >= dim.most || is_sum(dim.name) != sums) continue;
        const int64_t times = dim.times, got = shapes_[i][d];
        if (!sums) extents.emplace(dim.name, got / times);
        const std::optional<int64_t> extent = extent_of(dim.name, extents);
        if (extent && *extent * times == got) continue;
        fail("ShapeError", "dimension " + std::to_string(d) + " of input " + port.name + " is " +
                               std::to_string(got) + "; wanted " +
                               (times == 1 ? "" : std::to_string(times) + " times ") + dim.name +
                               (extent ? ", which is " + std::to_string(*extent) : ""));
      }
    }
  for (const auto& [name, extent] : extents)
    check(heddle_context_set_dim(context_, name.c_str(), extent));
  extents_ = std::move(extents);
}

void Slot::bind_inputs() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const void* const data = session_.inputs_[i].is_text
                                 ? static_cast<const void*>(texts_[i].data())
                                 : inputs_[i].data();
    check(heddle_context_bind_input(context_, static_cast<int64_t>(i), data));
  }
}

// ---- outputs ----

// As the next run writes them.
void Slot::find_outputs() {
  const int64_t count = session_.late_ ? heddle_context_output_count(context_)
                                       : static_cast<int64_t>(session_.outputs_.size());
  outputs_.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    Output& output = outputs_[static_cast<size_t>(i)];
    heddle_port port{};
    port.struct_size = sizeof port;
    heddle_context_output(context_, i, &port);
    output.key = nb::steal(PyUnicode_InternFromString(port.name));
    output.type = port.type;
    output.is_text = port.is_text != 0;
    output.dims.assign(port.dims, port.dims + std::max(port.rank, 0));
    output.bytes = port.bytes;
    output.shape = tuple_of(output.dims);
  }
  made_.resize(outputs_.size());
  given_.resize(outputs_.size());
  scratch_.clear();
  scratch_.resize(outputs_.size());
}

// Of bounded dimensions: outputs at the extents of this run.
void Slot::size_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    output.bytes = heddle_type_bytes(output.type);
    for (size_t d = 0; d < output.dims.size(); ++d) {
      const Dim& dim = session_.outputs_[i].dims[d];
      if (dim.least < dim.most) {
        const std::optional<int64_t> extent = extent_of(dim.name, extents_);
        if (!extent || *extent < 0)
          fail("ShapeError", "output " + session_.outputs_[i].name + ": its dimension " +
                                 std::to_string(d) + " (" + dim.name +
                                 ") is not known from the inputs");
        output.dims[d] = *extent * dim.times;
      }
      output.bytes *= output.dims[d];
    }
    output.shape = tuple_of(output.dims);
  }
  scratch_.clear();
  scratch_.resize(outputs_.size());
}

void Slot::choose(nb::handle names) {
  chosen_.clear();
  if (names.is_none()) {
    for (size_t i = 0; i < outputs_.size(); ++i) chosen_.push_back(i);
    return;
  }
  if (PyUnicode_Check(names.ptr()) != 0)
    throw nb::type_error("names of outputs: a str; wanted a list of them, or None");
  for (const nb::handle name : nb::iter(names)) {
    size_t i = 0;
    while (i < outputs_.size() && !name.equal(outputs_[i].key)) ++i;
    if (i == outputs_.size()) {
      std::string all;
      for (const Output& output : outputs_)
        all += (all.empty() ? "" : ", ") + std::string(nb::str(output.key).c_str());
      fail("UnknownName",
           std::string("no output ") + nb::repr(name).c_str() + "; the outputs are " + all);
    }
    chosen_.push_back(i);
  }
}

void Slot::bind_outputs(nb::handle out) {
  for (nb::object& array : given_) array.reset();
  for (nb::object& memory : made_) memory.reset();
  given_memory_.clear();
  std::vector<const void*> memory;
  if (!out.is_none()) {
    const bool by_name = PyDict_Check(out.ptr()) != 0;
    if (!by_name && nb::len(out) != chosen_.size())
      fail("InputError", "out has " + std::to_string(nb::len(out)) + " arrays for " +
                             std::to_string(chosen_.size()) + " outputs");
    memory.resize(outputs_.size());
    for (size_t k = 0; k < chosen_.size(); ++k) {
      const Output& output = outputs_[chosen_[k]];
      if (by_name && PyDict_Contains(out.ptr(), output.key.ptr()) != 1) continue;
      const nb::object array = by_name ? nb::object(out[output.key]) : nb::object(out[k]);
      if (array.is_none()) continue;
      Input& target = given_memory_.emplace_back();
      target.read_writable(array);
      const bool same =
          !output.is_text && target.type() == output.type &&
          static_cast<size_t>(target.rank()) == output.dims.size() &&
          std::memcmp(target.dims(), output.dims.data(), output.dims.size() * sizeof(int64_t)) == 0;
      if (!same)
        fail("ShapeError", std::string("out for ") + nb::str(output.key).c_str() + " is " +
                               shape_text(target.type(), target.dims(), target.rank()) +
                               "; wanted " +
                               shape_text(output.type, output.dims.data(), output.dims.size()));
      given_[chosen_[k]] = array;
      memory[chosen_[k]] = target.data();
    }
  }
  for (const size_t i : chosen_)
    if (!given_[i].is_valid() && !made_[i].is_valid())
      made_[i] = nb::cast(Memory(outputs_[i].bytes));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    void* data = nullptr;
    if (given_[i].is_valid()) {
      data = const_cast<void*>(memory[i]);
    } else if (made_[i].is_valid()) {
      data = nb::inst_ptr<Memory>(made_[i])->data();
    } else {
      if (!scratch_[i]) scratch_[i].emplace(outputs_[i].bytes);
      data = scratch_[i]->data();
    }
    check(heddle_context_bind_output(context_, static_cast<int64_t>(i), data));
  }
}

nb::object Slot::array_of(size_t i) {
  if (given_[i].is_valid()) return given_[i];
  const Output& output = outputs_[i];
  if (output.is_text) {
    nb::list words;
    const auto* const ids = static_cast<const uint32_t*>(nb::inst_ptr<Memory>(made_[i])->data());
    for (int64_t k = 0; k < output.bytes / static_cast<int64_t>(sizeof *ids); ++k) {
      const char* text = nullptr;
      size_t size = 0;
      check(heddle_model_text(session_.model_, ids[k], &text, &size));
      words.append(nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), "replace")));
    }
    return helper("array_of_texts")(words, output.shape);
  }
  static const nb::handle array =
      nb::object(nb::module_::import_("numpy").attr("ndarray")).release();
  static const nb::handle dtype_of = helper("dtype_of").release();
  static std::map<heddle_type, nb::handle> dtypes;  // under the GIL
  nb::handle& dtype = dtypes[output.type];
  if (!dtype.is_valid()) dtype = dtype_of(static_cast<int>(output.type)).release();
  if (dtype.is_none()) return nb::none();  // a token
  PyObject* const arguments[] = {output.shape.ptr(), dtype.ptr(), made_[i].ptr()};
  nb::object result = nb::steal(PyObject_Vectorcall(array.ptr(), arguments, 3, nullptr));
  check_python(result.is_valid());
  return result;
}

// ---- running ----

void Slot::call(heddle_status* (*function)(heddle_context*), bool may_fail) {
  heddle_status* status = nullptr;
  bool interrupted = false;
  const Clock::time_point begin = Clock::now();
  {
    std::optional<Interrupt> interrupt;
    if (seconds_ > kLongSeconds) interrupt.emplace(context_);
    {
      const nb::gil_scoped_release unlocked;
      status = function(context_);
    }
    interrupted = interrupt && interrupt->was_asked();
  }
  seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
  if (interrupted) cancelled_ = true;  // maybe of the next run: nobody else gets this context
  failed_ = status != nullptr;
  if (!failed_) return;
  seconds_ = 1;
  if (may_fail && heddle_status_kind(status) == HEDDLE_USER_ERROR)
    return heddle_status_free(status);
  session_.end(status, interrupted);
}

// What a run that failed has left is not to be relied on.
void Slot::settle() {
  if (!std::exchange(settled_, false)) {
    for (std::vector<int64_t>& shape : shapes_) shape.clear();
    if (session_.late_) outputs_.clear();
  }
}

nb::list Slot::run(nb::handle names, nb::handle feed, nb::handle out) {
  read(feed);
  settle();
  if (session_.late_) {
    run_late(names, out);
  } else {
    if (session_.bounded_ && set_shapes()) {
      set_extents();
      size_outputs();
    }
    choose(names);
    bind_inputs();
    bind_outputs(out);
    call(heddle_context_run);
  }
  settled_ = true;
  nb::list result = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(chosen_.size())));
  for (size_t k = 0; k < chosen_.size(); ++k)
    PyList_SetItem(result.ptr(), static_cast<Py_ssize_t>(k), array_of(chosen_[k]).release().ptr());
  return result;
}

// Where inputs have the shapes of the run before, outputs most often have, too: then that much
// memory is bound, and a run that wants another says so and has written nothing.
void Slot::run_late(nb::handle names, nb::handle out) {
  const bool changed = set_shapes();
  bind_inputs();
  if (!changed && guess_ && !outputs_.empty()) {
    choose(names);
    bind_outputs(out);
    call(heddle_context_run, /*may_fail=*/true);
    if (!failed_) return;
    guess_ = false;
  }
  const std::vector<Output> before = std::move(outputs_);
  outputs_.clear();
  call(heddle_context_prepare);
  find_outputs();
  bool same = before.size() == outputs_.size();
  for (size_t i = 0; same && i < before.size(); ++i) same = before[i].dims == outputs_[i].dims;
  guess_ = guess_ || same;
  choose(names);
  bind_outputs(out);
  call(heddle_context_run);
}

}  // namespace heddle::python
