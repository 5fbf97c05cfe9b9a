// Blocks one after the other. Where threads of a block meet, each is a fiber: made once, with a
// stack of its own, and used again by every block. Control goes over by longjmp, which asks nothing
// of the system; only the first entry of a fiber needs a context.

#include "machine.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace machine {

Place thread, block, block_size, grid_size;

namespace {

typedef void (*Body)(void **);

// Threads that meet: how many are not done, how many have come, how often all have.
struct Group {
    unsigned int members, arrived, meetings;
};

struct Fiber {
    jmp_buf state;
    ucontext_t context;
    Place place;
    unsigned int number;
    bool is_entered, is_done, is_paused;
    Group *awaited;  // resumed when it has met more often than `seen`
    unsigned int seen;
};

const unsigned int MOST_THREADS = 1024;
const size_t STACK_BYTES = 512 * 1024;

Fiber fibers[MOST_THREADS];
char *stacks;
Group whole, warps[MOST_THREADS];
unsigned int words[2][MOST_THREADS];  // of exchanges, in turn
unsigned int turns[MOST_THREADS];
unsigned int warp_width;
Fiber *current;
jmp_buf host;
Body body;
void **arguments;

void suspend() {
    if (_setjmp(current->state) == 0) _longjmp(host, 1);
}

void meet(Group &group) {
    unsigned int seen = group.meetings;
    if (++group.arrived == group.members) {
        group.arrived = 0;
        ++group.meetings;
        return;
    }
    current->awaited = &group;
    current->seen = seen;
    suspend();
}

void leave(Group &group) {
    if (--group.members > 0 && group.arrived == group.members) {
        group.arrived = 0;
        ++group.meetings;
    }
}

void fiber_main() {
    for (;;) {
        body(arguments);
        current->is_done = true;
        leave(whole);
        leave(warps[current->number / warp_width]);
        suspend();
    }
}

void resume(Fiber &fiber) {
    current = &fiber;
    thread = fiber.place;
    fiber.awaited = nullptr;
    fiber.is_paused = false;
    if (_setjmp(host) != 0) return;
    if (fiber.is_entered) _longjmp(fiber.state, 1);
    fiber.is_entered = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks + (&fiber - fibers) * STACK_BYTES;
    fiber.context.uc_stack.ss_size = STACK_BYTES;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
    setcontext(&fiber.context);
}

void start_block(unsigned int count) {
    whole = {count, 0, 0};
    for (unsigned int first = 0; first < count; first += warp_width) {
        unsigned int left = count - first;
        warps[first / warp_width] = {left < warp_width ? left : warp_width, 0, 0};
    }
    for (unsigned int i = 0; i < count; i++) {
        Fiber &fiber = fibers[i];
        fiber.place = {i % block_size.x, i / block_size.x % block_size.y,
                       i / block_size.x / block_size.y};
        fiber.number = i;
        fiber.is_done = false;
        fiber.awaited = nullptr;
        turns[i] = 0;
    }
}

bool run_meeting(unsigned int count) {
    start_block(count);
    unsigned int left = count;
    while (left > 0) {
        bool has_moved = false;
        for (unsigned int i = 0; i < count; i++) {
            Fiber &fiber = fibers[i];
            if (fiber.is_done) continue;
            if (fiber.awaited && fiber.awaited->meetings == fiber.seen) continue;
            resume(fiber);
            left -= fiber.is_done;
            has_moved |= !fiber.is_paused;
        }
        if (!has_moved) return false;
    }
    return true;
}

void run_alone() {
    for (thread.z = 0; thread.z < block_size.z; thread.z++)
        for (thread.y = 0; thread.y < block_size.y; thread.y++)
            for (thread.x = 0; thread.x < block_size.x; thread.x++) body(arguments);
}

}  // namespace

void meet_block() { meet(whole); }

void meet_warp() { meet(warps[current->number / warp_width]); }

void pause(bool again) {
    current->is_paused = again;
    suspend();
}

unsigned int exchange(unsigned int value, unsigned int lane) {
    // One meeting is enough: who writes to these words again has met all others in between.
    unsigned int *row = words[turns[current->number]++ % 2];
    row[current->number] = value;
    meet_warp();
    return row[current->number / warp_width * warp_width + lane % warp_width];
}

}  // namespace machine

// Run a kernel: `sizes` are the grid and the block, each (x, y, z). With `meets` its threads meet.
// Returns 0, 1 where threads wait for each other for ever, 2 where there is no memory for stacks.
extern "C" int machine_run(void (*kernel)(void **), void **given, const unsigned int *sizes,
                           unsigned int width, int meets) {
    using namespace machine;
    grid_size = {sizes[0], sizes[1], sizes[2]};
    block_size = {sizes[3], sizes[4], sizes[5]};
    body = kernel;
    arguments = given;
    warp_width = width;
    unsigned int count = block_size.x * block_size.y * block_size.z;
    if (meets && !stacks) {
        void *memory = mmap(nullptr, MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return 2;
        stacks = (char *)memory;
    }
    for (block.z = 0; block.z < grid_size.z; block.z++)
        for (block.y = 0; block.y < grid_size.y; block.y++)
            for (block.x = 0; block.x < grid_size.x; block.x++) {
                if (!meets) {
                    run_alone();
                } else if (!run_meeting(count)) {
                    for (unsigned int i = 0; i < count; i++) fibers[i].is_entered = false;
                    return 1;
                }
            }
    return 0;
}
