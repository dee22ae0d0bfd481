// Vendor libraries, opened at run time: nothing links against them and nothing requires them. A
// request to one is an Operation; its cost is not predicted here, only measured (by the tuner).
//
// A library is opened once a process and stays open. Everything here may be used by several
// threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/decision.h"
#include "base/error.h"
#include "library/operation.h"
#include "target/target.h"

namespace heddle::library {

inline constexpr const char* kOneDnn = "onednn";  // the one that is known

struct Facts {
  std::string name, version, path;  // "onednn", "2.6.3", "libdnnl.so.2"
  std::string threading;            // "openmp", "sequential"
};

// Which operands are the same bytes in every run: they are brought into the library's own form
// once.
struct Fixed {
  bool b = false, bias = false;
};

// An operation made ready. Its tasks write different parts of the result, each on the thread that
// calls and on no other. The split and so the bits do not depend on the number of threads.
class Call {
 public:
  virtual ~Call() = default;
  virtual int64_t tasks() const = 0;
  // The library's own name of what it does: "brgconv:avx512_core".
  virtual const std::string& implementation() const = 0;
  // `buffers`: a, b, bias (where the operation has one), c. Must come before run(); fixed operands
  // are read the first time only. Error: machine.
  virtual Status prepare(void* const* buffers) = 0;
  virtual Status run(void* const* buffers, int64_t begin, int64_t end) const = 0;
};

// No, by code: `library-shape` (the library has no such form), `library-reference` (only its slow
// reference form), `library-failed` (it reports an error).
struct CallOrNot {
  std::unique_ptr<Call> call;
  Decision decision = Decision::yes();
};

class Library {
 public:
  virtual ~Library() = default;
  virtual const Facts& facts() const = 0;
  virtual CallOrNot make_call(const Operation& operation, const Fixed& fixed, int64_t tasks) = 0;
};

// No, by code: `library-unknown` (no such name), `library-device` (not for this kind of target),
// `library-absent` (it cannot be opened),
// `library-version` (an interface that is not known), `library-threads` (its number of threads
// cannot be set), `library-isa` (it is open for more instructions than `target` has).
// HEDDLE_ONEDNN names the file to open; `off`: none.
struct Opened {
  std::shared_ptr<Library> library;
  Decision decision = Decision::yes();
};
Opened open(const std::string& name, const target::Target& target);

}  // namespace heddle::library
