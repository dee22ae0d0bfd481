#include "tiles/tiles_stand_in.h"

#include <signal.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace heddle::testing {
namespace {

struct Tiles {
  uint8_t bytes[8][16][64] = {};
  int rows[8] = {}, row_bytes[8] = {};
};
thread_local Tiles tiles;

struct sigaction before;

// A number of the instruction set to the place in a context.
constexpr int kPlaces[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                           REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// VEX.128 in three bytes, map 0F38.
class Decoder {
 public:
  explicit Decoder(greg_t* registers)
      : registers_(registers), at_(reinterpret_cast<const uint8_t*>(registers[REG_RIP])) {}

  bool run() {
    if (at_[0] != 0xc4 || (at_[1] & 0x1f) != 2) return false;
    vvvv_ = ~(at_[2] >> 3) & 15;
    prefix_ = at_[2] & 3;  // none, 66, F3, F2
    opcode_ = at_[3];
    mod_ = at_[4] >> 6;
    reg_ = (at_[4] >> 3 & 7) | (at_[1] & 0x80 ? 0 : 8);
    rm_ = at_[4] & 7;
    length_ = 5;
    if (!execute()) return false;
    registers_[REG_RIP] += length_;
    return true;
  }

 private:
  uint64_t value(int number) const { return static_cast<uint64_t>(registers_[kPlaces[number]]); }

  // Of the memory operand, whose index is a stride.
  uint8_t* address(uint64_t* stride) {
    const int high_base = at_[1] & 0x20 ? 0 : 8, high_index = at_[1] & 0x40 ? 0 : 8;
    uint64_t base = 0;
    bool has_base = true, relative = false;
    int number = rm_;
    if (rm_ == 4) {
      const uint8_t sib = at_[length_++];
      const int index = (sib >> 3 & 7) | high_index;
      if (stride && index != 4) *stride = value(index) << (sib >> 6);
      number = sib & 7;
      has_base = !(mod_ == 0 && number == 5);
    } else if (mod_ == 0 && rm_ == 5) {
      relative = true;
      has_base = false;
    }
    if (has_base) base = value(number | high_base);
    int64_t displacement = 0;
    if (mod_ == 1) {
      displacement = static_cast<int8_t>(at_[length_++]);
    } else if (mod_ == 2 || !has_base) {
      int32_t wide;
      std::memcpy(&wide, at_ + length_, 4);
      displacement = wide;
      length_ += 4;
    }
    if (relative) base = reinterpret_cast<uint64_t>(at_ + length_);
    return reinterpret_cast<uint8_t*>(base + static_cast<uint64_t>(displacement));
  }

  bool execute() {
    if (opcode_ == 0x49 && prefix_ == 0) {
      if (mod_ == 3) {
        tiles = {};
      } else {
        const uint8_t* text = address(nullptr);
        for (int i = 0; i < 8; ++i) {
          tiles.row_bytes[i] = text[16 + 2 * i];
          tiles.rows[i] = text[48 + i];
        }
      }
      return true;
    }
    if (reg_ > 7 || tiles.rows[reg_] == 0) return false;
    if (opcode_ == 0x49 && prefix_ == 3) {
      std::memset(tiles.bytes[reg_], 0, sizeof tiles.bytes[reg_]);
      return true;
    }
    if (opcode_ == 0x4b && prefix_ >= 1) {
      uint64_t stride = 0;
      uint8_t* memory = address(&stride);
      for (int row = 0; row < tiles.rows[reg_]; ++row, memory += stride) {
        uint8_t* here = tiles.bytes[reg_][row];
        const auto count = static_cast<size_t>(tiles.row_bytes[reg_]);
        if (prefix_ == 2)
          std::memcpy(memory, here, count);
        else
          std::memcpy(here, memory, count);
      }
      return true;
    }
    if (opcode_ == 0x5c && prefix_ == 2) return multiply<float>();
    if (opcode_ == 0x5e && prefix_ == 1) return multiply<int32_t>();
    return false;
  }

  // tdpbf16ps, tdpbusd.
  template <typename Sum>
  bool multiply() {
    if (mod_ != 3 || vvvv_ > 7) return false;
    for (int m = 0; m < tiles.rows[reg_]; ++m) {
      for (int n = 0; n < tiles.row_bytes[reg_] / 4; ++n) {
        uint8_t* place = tiles.bytes[reg_][m] + 4 * n;
        Sum sum;
        std::memcpy(&sum, place, 4);
        for (int k = 0; k < tiles.row_bytes[rm_] / 4; ++k)
          sum += word(tiles.bytes[rm_][m] + 4 * k, tiles.bytes[vvvv_][k] + 4 * n, Sum{});
        std::memcpy(place, &sum, 4);
      }
    }
    return true;
  }

  static float flushed(const uint8_t* bytes) {
    const uint32_t bits = static_cast<uint32_t>(bytes[0] | bytes[1] << 8) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return std::fpclassify(x) == FP_SUBNORMAL ? 0 : x;
  }
  static float word(const uint8_t* a, const uint8_t* b, float) {
    return flushed(a) * flushed(b) + flushed(a + 2) * flushed(b + 2);
  }
  static int32_t word(const uint8_t* a, const uint8_t* b, int32_t) {
    int32_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += a[i] * static_cast<int8_t>(b[i]);
    return sum;
  }

  greg_t* registers_;
  const uint8_t* at_;
  int vvvv_ = 0, prefix_ = 0, opcode_ = 0, mod_ = 0, reg_ = 0, rm_ = 0, length_ = 0;
};

void on_illegal(int signal, siginfo_t*, void* context) {
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (Decoder(registers).run()) return;
  sigaction(signal, &before, nullptr);  // it comes again
}

}  // namespace

void stand_in_for_tiles() {
  static const bool kDone = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_illegal;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGILL, &action, &before) == 0;
  }();
  (void)kDone;
}

}  // namespace heddle::testing

// The library's: what target/host.cc looks for.
extern "C" __attribute__((visibility("default"))) const int heddle_tiles_stand_in = 1;

namespace {
[[maybe_unused]] const bool kInstalled = (heddle::testing::stand_in_for_tiles(), true);
}  // namespace
