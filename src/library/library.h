// Vendor libraries, opened at run time: nothing links against them or requires them. A request to
// one is an Operation; its cost is only measured (by the tuner), not predicted here.
//
// A library is opened once per process and stays open. Everything here may be used by several
// threads concurrently.
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

inline constexpr const char* kOneDnn = "onednn";  // the only known one

struct Facts {
  std::string name, version, path;  // "onednn", "2.6.3", "libdnnl.so.2"
  std::string threading;            // "openmp", "sequential"
};

// Operands with the same bytes in every run: they are converted to the library's layout only once.
struct Fixed {
  bool b = false, bias = false;
};

// A prepared operation. Its tasks write disjoint parts of the result, each on the calling thread
// only. The split, and so the bits, do not depend on the number of threads.
class Call {
 public:
  virtual ~Call() = default;
  virtual int64_t tasks() const = 0;
  // The library's name of its implementation: "brgconv:avx512_core".
  virtual const std::string& implementation() const = 0;
  // `buffers`: a, b, bias (if the operation has one), c. Must precede run(); fixed operands are
  // read the first time only. Error: machine.
  virtual Status prepare(void* const* buffers) = 0;
  virtual Status run(void* const* buffers, int64_t begin, int64_t end) const = 0;
};

// Codes of a refusal: `library-shape` (the library does not support the shape), `library-reference`
// (only its slow reference implementation), `library-failed` (it reports an error).
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

// Codes of a refusal: `library-unknown` (no such name), `library-device` (not for this kind of
// target), `library-absent` (it cannot be opened), `library-version` (an unknown interface),
// `library-threads` (its number of threads cannot be set), `library-isa` (it was opened for a
// larger instruction set than `target` has). HEDDLE_ONEDNN names the file to open; `off`: none.
struct Opened {
  std::shared_ptr<Library> library;
  Decision decision = Decision::yes();
};
Opened open(const std::string& name, const target::Target& target);

}  // namespace heddle::library
