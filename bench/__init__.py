"""Made-up exports of any size, and how long fastprof takes on them."""
