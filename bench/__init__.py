"""Generate exports of any size and measure fastprof on them."""
