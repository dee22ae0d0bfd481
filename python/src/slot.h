// A context and what one run needs beside it.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "heddle.h"
#include "input.h"
#include "memory.h"
#include "session.h"

namespace heddle::python {

// An output as the next run writes it.
struct Output {
  nanobind::object key;
  heddle_type type = 0;
  bool is_text = false;
  std::vector<int64_t> dims;
  int64_t bytes = 0;
  nanobind::object shape;  // dims as a tuple
};

class Slot {
 public:
  explicit Slot(const Session& session);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  nanobind::list run(nanobind::handle names, nanobind::handle feed, nanobind::handle out);
  void cancel();  // from any thread
  // Whether another run can have it.
  bool is_good() const { return !cancelled_; }
  // Lets go of what the caller gave.
  void release();

 private:
  void settle();
  void read(nanobind::handle feed);
  void read_dict(PyObject* feed);
  [[noreturn]] void complain_of_names(PyObject* feed) const;
  void read_one(size_t i, nanobind::handle value);
  void read_texts(size_t i, nanobind::handle value);
  void check_shape(size_t i);
  bool set_shapes();  // whether there are others than those of the last run
  void set_extents();
  void bind_inputs();
  void choose(nanobind::handle names);
  void bind_outputs(nanobind::handle out);
  void find_outputs();
  void size_outputs();
  void call(heddle_status* (*function)(heddle_context*), bool may_fail = false);
  void run_late(nanobind::handle names, nanobind::handle out);
  nanobind::object array_of(size_t output);

  const Session& session_;
  heddle_context* context_ = nullptr;
  std::deque<Input> inputs_;                  // by number
  std::vector<std::vector<uint32_t>> texts_;  // of inputs that are strings
  std::vector<std::vector<int64_t>> text_dims_;
  std::vector<std::vector<int64_t>> shapes_;  // of the last run; late and bounded ones
  Extents extents_;                           // of bounded dimensions
  std::vector<Output> outputs_;
  std::vector<size_t> chosen_;           // outputs that are asked for
  std::vector<nanobind::object> given_;  // by output: the caller's array, or nothing
  std::deque<Input> given_memory_;
  std::vector<nanobind::object> made_;          // by output: Memory
  std::vector<std::optional<Memory>> scratch_;  // of those nobody asked for
  bool guess_ = true;                           // late: that outputs are as they were
  bool settled_ = false;                        // the last run got to its end
  bool failed_ = false;                         // the last call(may_fail)
  bool cancelled_ = false;
  double seconds_ = 1;  // of the last run; the first one is long
};

}  // namespace heddle::python
