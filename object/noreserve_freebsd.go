package object

// mapNoReserve is nothing where no memory is set aside for mappings.
const mapNoReserve = 0
