// Answers for the tests of package amd64: reads records of 16 instruction bytes from stdin and writes what Zydis
// says of each as a fixed record to stdout. Build: cc -O2 zydis.c -lZydis
#include <Zydis/Zydis.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ARITH (ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

struct answer {             // little-endian, 48 bytes
  uint8_t length;           // 0: not an instruction
  uint8_t rip_relative;     // rip_target is set
  uint8_t relative;         // branch_target is set
  uint8_t memory;           // a memory operand that is read or written; 2: an address that is only computed
  uint16_t read, written;   // general registers; conditional ones are in both
  uint16_t tested, changed; // the six arithmetic flags: read; certainly overwritten or undefined
  uint16_t some;            // flags changed or undefined in any way
  uint16_t category;        // ZydisInstructionCategory
  int64_t rip_target;       // from address 0
  int64_t branch_target;
  int32_t mnemonic;
  uint16_t surely_written;  // general registers written in full, always
  uint8_t disp_offset, disp_size;
  uint8_t imm_offset, imm_size, encoding, map;
  uint8_t opcode, pad[3];
};

static uint16_t gpr(ZydisRegister r) {
  ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
  if (wide < ZYDIS_REGISTER_RAX || wide > ZYDIS_REGISTER_R15) return 0;
  return (uint16_t)(1u << (wide - ZYDIS_REGISTER_RAX));
}

static void operand(struct answer *a, const ZydisDecodedOperand *o) {
  if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
    uint16_t m = gpr(o->reg.value);
    if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) a->read |= m;
    if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
      a->written |= m;
      if (o->actions & ZYDIS_OPERAND_ACTION_CONDWRITE || o->size < 32) a->read |= m;
      else a->surely_written |= m;
    }
  }
  if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
    a->read |= gpr(o->mem.base) | gpr(o->mem.index);
    if (o->actions && o->mem.type != ZYDIS_MEMOP_TYPE_AGEN) a->memory = 1;
    else if (!a->memory) a->memory = 2;
  }
}

// coprocessor reports whether only Knights Corner, which runs no 64-bit Linux programs of ours, has the instruction.
static int coprocessor(const ZydisDecodedInstruction *i) {
  return i->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX || i->meta.isa_ext == ZYDIS_ISA_EXT_KNC ||
         i->meta.isa_ext == ZYDIS_ISA_EXT_KNCE || i->meta.isa_ext == ZYDIS_ISA_EXT_KNCV;
}

int main(void) {
  ZydisDecoder d;
  ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  static uint8_t in[16 * 4096];
  size_t n;
  while ((n = fread(in, 16, 4096, stdin)) > 0) {
    for (size_t k = 0; k < n; k++) {
      struct answer a;
      memset(&a, 0, sizeof a);
      ZydisDecodedInstruction i;
      ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
      if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, in + 16 * k, 16, &i, ops)) && !coprocessor(&i)) {
        a.length = i.length;
        a.category = (uint16_t)i.meta.category;
        a.mnemonic = (int32_t)i.mnemonic;
        a.encoding = (uint8_t)i.encoding;
        a.map = (uint8_t)i.opcode_map;
        a.opcode = i.opcode;
        if (i.cpu_flags) {
          a.tested = (uint16_t)(i.cpu_flags->tested & ARITH);
          a.some = (uint16_t)((i.cpu_flags->modified | i.cpu_flags->set_0 | i.cpu_flags->set_1 | i.cpu_flags->undefined) & ARITH);
        }
        a.changed = a.some;
        for (int j = 0; j < i.operand_count; j++) {
          operand(&a, &ops[j]);
          if (ops[j].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[j].reg.value >= ZYDIS_REGISTER_FLAGS &&
              ops[j].reg.value <= ZYDIS_REGISTER_RFLAGS && (ops[j].actions & ZYDIS_OPERAND_ACTION_CONDWRITE))
            a.changed = 0;
          ZyanU64 t;
          if (ops[j].type == ZYDIS_OPERAND_TYPE_MEMORY && (ops[j].mem.base == ZYDIS_REGISTER_RIP || ops[j].mem.base == ZYDIS_REGISTER_EIP) &&
              ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&i, &ops[j], 0, &t))) {
            a.rip_relative = 1;
            a.rip_target = (int64_t)t;
          }
          if (ops[j].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && ops[j].imm.is_relative &&
              ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&i, &ops[j], 0, &t))) {
            a.relative = 1;
            a.branch_target = (int64_t)t;
          }
        }
        a.disp_offset = i.raw.disp.offset;
        a.disp_size = i.raw.disp.size / 8;
        a.imm_offset = i.raw.imm[0].offset;
        a.imm_size = (uint8_t)((i.raw.imm[0].size + i.raw.imm[1].size) / 8);
      }
      fwrite(&a, sizeof a, 1, stdout);
    }
  }
  return 0;
}
