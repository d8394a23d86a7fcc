# One portion of work for each line of input, answered by what came of it.
use strict;
use warnings;
$| = 1;

sub fail { my ($n) = @_; die "deep\n" if $n == 0; return 1 + fail($n - 1) }

sub portion {
    my ($seed, %count, @words) = (42);
    my $next = sub { $seed = ($seed * 1103515245 + 12345) % 2147483648; int($seed / 65536) % $_[0] };
    for my $i (1 .. 2500) {
        my $w = join '', map { chr(97 + $next->(8)) } 1 .. 2 + $next->(7);
        push @words, $w;
        $count{$w}++;
    }
    my $text = join ' ', @words;
    my @found = $text =~ /((?:a|b)+[c-e]*)(?=f)/g;
    (my $changed = $text) =~ s/(\w)(\w+)/\u$1\L$2/g;
    $changed =~ tr/a-h/b-i/;
    my $failed = 0;
    for my $i (0 .. 80) { eval { fail($i % 25) }; $failed++ if $@ eq "deep\n" }
    my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    my $sum = unpack '%32C*', join ',', map { sprintf '%s=%05.2f', $_, $count{$_} / 3 } @sorted;
    $sum = ($sum * 31 + $_) % 1000003 for unpack 'C*', $changed . join('', @found);
    return "$sum $failed " . scalar(@found) . ' ' . length(join '', reverse map { pack 'n', length } @words);
}

while (<STDIN>) { print portion(), "\n~end\n" }
