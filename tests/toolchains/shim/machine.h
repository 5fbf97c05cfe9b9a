// What programs see of the machine that runs them on the CPU, whatever language they are in; that
// language's own names come from a header beside this one. `machine.cpp` is the machine.
//
// A block is run by one thread of the host. Its threads are fibers, which change places where they
// meet, and only there: so atomic operations need nothing.

#pragma once

namespace machine {

struct Place {
    unsigned int x, y, z;
};

extern Place thread, block, block_size, grid_size;

// All threads of the block, or of the warp, that are not done come here before any goes on.
void meet_block();
void meet_warp();

// Other threads go on. A block whose threads all do only this, `again`, waits for ever.
void pause(bool again);

// The value that another lane of this thread's warp gives; all lanes of the warp do this.
unsigned int exchange(unsigned int value, unsigned int lane);

// A kernel that takes the addresses of its arguments.
template <int count, int... positions>
struct Arguments : Arguments<count - 1, count - 1, positions...> {};

template <int... positions>
struct Arguments<0, positions...> {
    template <typename... Types>
    static void give(void (*kernel)(Types...), void **addresses) {
        kernel(*(Types *)addresses[positions]...);
    }
};

template <typename... Types>
void give(void (*kernel)(Types...), void **addresses) {
    Arguments<sizeof...(Types)>::give(kernel, addresses);
}

}  // namespace machine
