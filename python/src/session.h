// A compiled model and a pool of contexts: any number of threads may run it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle.h"
#include "ports.h"

namespace heddle::python {

class OpenOptions;
class Slot;

class Session {
 public:
  // `model`: a path (str), the bytes of a file, which `name` is for in messages, or what
  // open_family() takes. `late`: None
  // finds out whether shapes are known only when it runs. `progress`: None, or a function of (step,
  // done, steps, seconds) that ends the compilation by returning something true.
  Session(nanobind::handle model, const std::string& name, const nanobind::dict& open,
          const nanobind::dict& compile, nanobind::handle late, nanobind::handle progress);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // `names`: of outputs, None: all. `feed`: a dictionary by name, or a sequence by number. `out`:
  // None, or arrays that outputs are written to, likewise.
  nanobind::list run(nanobind::handle names, nanobind::handle feed, nanobind::handle out);
  void cancel();               // the runs under way
  bool wait(int64_t most_ms);  // for a compilation in the background: whether it is done
  void save(const std::string& path);
  nanobind::list inputs() const;
  // Where shapes are known late, the first call imports the model again, for other extents: it
  // tells which dimensions differ.
  nanobind::list outputs();
  nanobind::dict info() const;
  nanobind::list notes() const;
  nanobind::dict origin() const;   // what the model's file says of itself
  nanobind::list unbound() const;  // (name, extent) of dynamic dimensions that nothing bound
  bool is_late() const { return late_; }

 private:
  struct Progress;
  friend class Slot;
  friend class Lease;
  void open(nanobind::handle late);
  void compile(const nanobind::dict& options, nanobind::handle progress);
  heddle_status* read(OpenOptions& options, heddle_model** model) const;
  bool has_unbound() const;
  void open_outputs();
  bool open_outputs_at(int64_t extent);
  // Throws it: of a run or a compilation, during which Ctrl-C was pressed or not.
  void end(heddle_status* status, bool interrupted) const;

  nanobind::object source_;  // a path or bytes; of late models, to read them again
  std::string name_;
  nanobind::dict open_;
  bool outputs_are_open_ = false;  // open_outputs() was called
  std::unique_ptr<Progress> progress_;
  heddle_model* model_ = nullptr;
  heddle_program* program_ = nullptr;
  bool late_ = false, bounded_ = false;
  int made_in_ = 0;  // number of the process, counted by forks
  std::vector<Port> inputs_, outputs_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> idle_;
  std::vector<Slot*> busy_;
};

// Counts forks, in the child.
void watch_forks();

}  // namespace heddle::python
