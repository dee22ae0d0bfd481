// Matrix instructions: mma.def as data. The interpreter executes from it, schedules choose from it
// (schedule/gemm.h), and emitters are checked against it.
// An instruction of one lane is the operator dot(a, b, c, name): a and b are words, unsigned
// integers that hold K elements each, the first in the lowest bits.
//
// An mma statement acts on the registers of all lanes at once and must be outside vector and thread
// loops. Its fragments d, a, b, c are reg or fragment buffers with the instruction's lanes; the
// last extent of each is its registers per lane (elements of fewer than 8 bits are in the low bits
// of a byte each), and Stmt::indices holds the indices before that one (constants once unrolled),
// those of d first. c may be d.
//
// A tile is an instruction of one lane with rows and columns. Its fragments have Space::fragment;
// fragment_load, fragment_store and fragment_clear move all registers of a fragment: in `count`
// rows of equally many registers, each row consecutive in memory. Elements of memory that are wider
// than the fragment's hold several each, the first in the lowest bits.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/type.h"

namespace heddle::kernel {

using tensor::Type;

enum class MmaNumerics : uint8_t { wraps, differs, once, tf32, flushes };  // see mma.def

struct MmaPlace {
  int batch = 0, row = 0, column = 0;
};

// A bijection from (lane, register) to the elements of one operand.
struct MmaMap {
  std::vector<MmaPlace> register_bits, lane_bits;  // added where the bit is set
  int registers() const { return 1 << register_bits.size(); }
  MmaPlace at(int lane, int reg) const;
};

struct MmaDescriptor {
  std::string_view name, features;
  int lanes, batch, m, n, k;
  Type d, a, b;  // c has the type of d
  MmaMap map_d, map_a, map_b;
  MmaNumerics numerics;
  bool is_dot() const { return lanes == 1 && m == 1 && k > 1; }
  bool is_tile() const { return lanes == 1 && m > 1; }
  static Type fragment_type(Type type);  // the type that holds an element
  bool is_integer() const {
    return numerics == MmaNumerics::wraps || numerics == MmaNumerics::differs;
  }
  Type word() const;          // of a dot: the unsigned integer of k elements
  MmaNumerics sums() const {  // how sums are read and rounded
    return numerics == MmaNumerics::flushes ? numerics : MmaNumerics::once;
  }
};

std::span<const MmaDescriptor> mma_table();
const MmaDescriptor* find_mma(std::string_view name);  // null where there is none
const MmaDescriptor* plain_mma();                      // `fma`: one element of k, any type
int64_t mma_row(const MmaDescriptor& mma);             // in mma_table()

// One execution on values in the form of scalar.h, [lane][register] each. d may be c.
void execute_mma(const MmaDescriptor& mma, uint64_t* d, const uint64_t* a, const uint64_t* b,
                 const uint64_t* c);
// A dot of words a and b, added to c.
uint64_t execute_dot(const MmaDescriptor& mma, uint64_t a, uint64_t b, uint64_t c);

}  // namespace heddle::kernel
