/* The three parts of the abi target, each a round of checks. */
#ifndef ABI_H
#define ABI_H
#include <stdint.h>

void abi_values(uint64_t *seed);      /* abi.c: how values are passed */
void abi_control(uint64_t *seed);     /* abi_control.c: how control moves */
void abi_deep(void);                  /* abi_control.c: 100,000 frames */
void abi_signals_start(void);         /* abi_signal.c: timers on from here */
uint64_t abi_signals_round(void);     /* … check; signals handled so far */
void abi_signals_stop(void);
#endif
