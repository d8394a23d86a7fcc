info functions descend
info types Counted
info line main
info scope main
ptype std::string
disassemble main
break descend
tbreak main
run < /dev/null > /dev/null
info registers rip rsp
bt
info locals
finish
continue 2
up
print depth
info sharedlibrary
print 3 * 14
print sizeof(std::string)
info symbol main
kill
delete
python print(sum(i * i for i in range(20000)))
python print(gdb.lookup_global_symbol('main').type)
echo ~end\n
