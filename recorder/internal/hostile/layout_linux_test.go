package hostile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// layout tells a target written in C where everything is in the ring memory.
func layout() (flags []string) {
	for name, v := range map[string]uint64{
		"HDR_MAGIC": ring.HdrMagic, "HDR_SANDBOXED": ring.HdrSandboxed, "HDR_FOLLOW": ring.HdrFollow,
		"HDR_REGISTERED": ring.HdrRegistered, "REGISTRY_OFF": ring.RegistryOff, "REGISTRY_SIZE": ring.RegistrySize,
		"REGISTRY_ENTRY": ring.RegistryEntry, "REG_TID": ring.RegTID, "REG_PID": ring.RegPID, "REG_NAME": ring.RegName,
		"HDR_EXECS": ring.HdrExecs, "EXECS_OFF": ring.ExecsOff, "EXEC_SLOTS": ring.ExecSlots, "EXEC_SHIFT": ring.ExecShift,
		"EXEC_TID": ring.ExecTID, "EXEC_PID": ring.ExecPID, "EXEC_STATE": ring.ExecState, "EXEC_ASKED": ring.ExecAsked,
		"SLOTS_OFF": ring.SlotsOff, "SLOT_SIZE": ring.SlotSize, "SLOT_CLAIM": ring.SlotClaim, "MAX_TID": ring.MaxTID,
		"CHUNKS_OFF": ring.ChunksOff, "CLAIM_EMPTY": ring.ClaimEmpty,
	} {
		flags = append(flags, fmt.Sprintf("-D%s=%#xul", name, v))
	}
	slices.Sort(flags)
	return flags
}

// knowing is target for one that knows the layout.
func knowing(t testing.TB, name string, flags ...string) string {
	t.Helper()
	realtest.Need(t, realtest.Superuser, realtest.LivePtrace)
	return realtest.Build(t, name, append(append(layout(), "-static"), flags...)...)
}
