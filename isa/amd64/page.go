package amd64

// PageSize is the size of the processor's smallest pages (Intel SDM vol. 3, paging), which is what Linux maps by.
const PageSize = 4096
