// Runs the suite that every device must pass on the toy.
#include <heddle/runtime/hal_conformance.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

extern "C" const heddle_hal* heddle_device(void);

int main() {
  // A kernel in the device's own form, made by its compiler.
  std::ofstream("twice.c") << "void twice(void* const* b, const long* d, long begin, long end) {\n"
                              "  for (long i = begin * 16; i < end * 16; ++i)\n"
                              "    ((float*)b[1])[i] = 2 * ((float*)b[0])[i];\n}\n";
  if (std::system("cc -O1 -fPIC -c twice.c -o twice.o") != 0) return 2;
  std::ifstream file("twice.o", std::ios::binary);
  heddle::runtime::ConformanceKernel kernel;
  kernel.object.assign(std::istreambuf_iterator<char>(file), {});
  kernel.symbol = "twice";
  const auto wrong = heddle::runtime::HalConformance(heddle_device(), kernel).check();
  for (const std::string& line : wrong) std::printf("%s\n", line.c_str());
  std::printf("%s\n", wrong.empty() ? "PASS" : "FAIL");
  return wrong.empty() ? 0 : 1;
}
