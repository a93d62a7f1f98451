package journal

import "os"

// spareFromOOM asks the kernel to kill others first when memory runs out. Lowering the score needs
// CAP_SYS_RESOURCE; without it the guard has its chances like everyone.
func spareFromOOM() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-900"), 0)
}
