from segiou.demo.command import DemoFolders as DemoFolders, write_demo as write_demo
