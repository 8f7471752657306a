// Hide the instructions that are newer than AVX2 (AVX-512, VNNI, AMX) from a program: `python -m bench COMMAND --avx2`.
//
// Libraries choose their kernels by the instruction CPUID. Linux lets each thread fault at it (arch_prctl(2),
// ARCH_SET_CPUID), if the processor can. The handler of the fault executes CPUID and clears the bits in its answer.
// What then runs are the libraries' AVX2 kernels, at this processor's speed.

#define _GNU_SOURCE  // the names of the registers
#include <asm/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define BIT(number) (1u << (number))

static void answer(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];
    if (code[0] != 0x0F || code[1] != 0xA2) {  // not CPUID: a real fault, which the next try reports
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    unsigned leaf = registers[REG_RAX], part = registers[REG_RCX], a, b, c, d;
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(part));
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (leaf == 7 && part == 0) {
        b &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31));  // AVX-512
        c &= ~(BIT(1) | BIT(6) | BIT(8) | BIT(9) | BIT(10) | BIT(11) | BIT(12) | BIT(14));  // its VBMI, VNNI, GFNI
        d &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25));  // the rest of AVX-512, and AMX
    } else if (leaf == 7 && part == 1) {
        a = b = c = d = 0;  // AVX-VNNI, AVX-512 BF16, AVX10
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void hide(void) {
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)) {
        perror("arch_prctl(ARCH_SET_CPUID)");
        exit(1);
    }
}
