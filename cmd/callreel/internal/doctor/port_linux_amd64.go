package doctor

// ported says whether what is checked here is what matters on this processor.
const ported = true
