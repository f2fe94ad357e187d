// The heap of the image decoder: a hostile file decides how much is asked for, this bounds how much is given.
#ifndef TOOLS_DECODER_MEMORY_H_
#define TOOLS_DECODER_MEMORY_H_

#include <cstddef>

namespace qplan::tools {

// Work as malloc, realloc and free, within the budget of the calling thread; null beyond it. Memory is freed
// in the thread that allocated it.
void* decoder_allocate(size_t bytes);
void* decoder_reallocate(void* memory, size_t bytes);
void decoder_free(void* memory);

// While one exists its thread may hold so many bytes at a time; otherwise none.
class DecoderBudget {
 public:
  explicit DecoderBudget(size_t bytes);
  ~DecoderBudget();
  DecoderBudget(const DecoderBudget&) = delete;
  DecoderBudget& operator=(const DecoderBudget&) = delete;
  // Whether an allocation was refused because of the budget.
  [[nodiscard]] bool exceeded() const;
};

}  // namespace qplan::tools

#endif  // TOOLS_DECODER_MEMORY_H_
