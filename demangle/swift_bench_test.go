package demangle

import "testing"

// swiftBenchNames are of the sizes that programs have: metadata, members, generic
// specializations.
var swiftBenchNames = []string{
	"$s5Store4CartC5itemsSayAA4ItemVGvg",
	"$s5Store4CartC3add_5countyAA4ItemV_SitKF",
	"$s5Store4CartCMa",
	"$s5Store4CartCAA7SaveableA2aDP4saveyyYaKFTW",
	"$s5Store7catalogSDySSAA4ItemVGvpWvd",
	"$sSDyq_Sgxcig5Store4ItemV_SSTg5",
	"$s5Store4CartC5totalSdyFSdSd_AA4ItemVtXEfU_TA",
}

// One iteration is one name.
func BenchmarkSwift(b *testing.B) {
	for _, form := range []struct {
		name string
		of   func(string) string
	}{{"full", Name}, {"short", Short}} {
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				form.of(swiftBenchNames[i%len(swiftBenchNames)])
			}
		})
	}
}
